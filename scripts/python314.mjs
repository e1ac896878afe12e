// Runs pytest in CPython 3.14 compiled to WebAssembly, for machines that have Node.js but no Python 3.14.
// usage: node scripts/python314.mjs NODE_MODULES SITE_PACKAGES PYTEST_ARGUMENT...   (from the checkout)
import { pathToFileURL } from "node:url";
import { resolve } from "node:path";

const [modules, site, ...args] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(resolve(modules, "pyodide/pyodide.mjs")));
const env = { HYPOTHESIS_PROFILE: process.env.HYPOTHESIS_PROFILE ?? "quick", PYTHONDONTWRITEBYTECODE: "1" };
const python = await loadPyodide({ env });
for (const [path, root] of [["/site", resolve(site)], ["/checkout", process.cwd()]]) {
  python.FS.mkdirTree(path);
  python.FS.mount(python.FS.filesystems.NODEFS, { root }, path);
}
const status = python.runPython(`
import os, sys
sys.path[:0] = ["/site", "/checkout"]
os.chdir("/checkout")
assert sys.version_info[:2] == (3, 14), sys.version
import pytest
int(pytest.main(["-q", "-p", "no:cacheprovider", *${JSON.stringify(args)}]))
`);
process.exit(status);
