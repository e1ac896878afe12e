"""The machine: text in, events out.  Standard library only, no I/O."""
