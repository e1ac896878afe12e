"""``format``: the ones that are enforced, each as a pattern of the whole string.

No narrower than the document that defines the format.  Where that document has more than a regular language
(lengths of labels in a host name, a leap second's date), the pattern has more, never fewer.
"""

from __future__ import annotations

_BYTE = r"(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = rf"({_BYTE}\.){{3}}{_BYTE}"
_H = "[0-9A-Fa-f]{1,4}"


def _ipv6() -> str:
    """RFC 4291, section 2.2: eight groups, or fewer around one ``::``; the last two may be an IPv4 address."""
    ways = [f"({_H}:){{7}}{_H}", f"({_H}:){{6}}{_IPV4}"]
    for left in range(8):
        before = f"{_H}(:{_H}){{{left - 1}}}" if left else ""
        right = 7 - left
        after = [f"({_H}:){{0,{right - 1}}}{_H}"] if right else []
        after += [f"({_H}:){{0,{right - 2}}}{_IPV4}"] if right >= 2 else []
        ways.append(f"{before}::({'|'.join(after)})?")
    return "|".join(ways)


_IPV6 = _ipv6()

# RFC 3339, section 5.6, with its lower case "t" and "z" and leap seconds.
_DATE = (
    r"(\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))"
    r"|(\d\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)"
)
_TIME = r"([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d{1,12})?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)"
_DURATION = (
    r"P(\d+W|(\d+Y(\d+M)?(\d+D)?|\d+M(\d+D)?|\d+D)(T(\d+H(\d+M)?(\d+S)?|\d+M(\d+S)?|\d+S))?"
    r"|T(\d+H(\d+M)?(\d+S)?|\d+M(\d+S)?|\d+S))"
)

# RFC 1123, section 2.1 (without its limits of 63 and 253 characters).
_HOSTNAME = r"[A-Za-z0-9]+(-+[A-Za-z0-9]+)*(\.[A-Za-z0-9]+(-+[A-Za-z0-9]+)*)*"

# RFC 5321, section 4.1.2: a dot-string or a quoted string, at a domain or an address in brackets.
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_EMAIL = (
    rf'({_ATOM}(\.{_ATOM})*|"([ !#-\[\]-~]|\\[ -~])*")@'
    rf"({_HOSTNAME}|\[({_IPV4}|IPv6:[0-9A-Fa-f:.]+|[A-Za-z0-9-]*[A-Za-z0-9]:[!-Z^-~]+)\])"
)

# RFC 3986, appendix A.
_PCT = "%[0-9A-Fa-f]{2}"
_SUB = "!$&'()*+,;="
_NAME = f"[A-Za-z0-9._~{_SUB}-]|{_PCT}"
_PCHAR = f"[A-Za-z0-9._~{_SUB}:@-]|{_PCT}"
_USER = f"([A-Za-z0-9._~{_SUB}:-]|{_PCT})*@"
_LITERAL = rf"\[([0-9A-Fa-f:.]+|[vV][0-9A-Fa-f]+\.[A-Za-z0-9._~{_SUB}:-]+)\]"
_AUTHORITY = rf"({_USER})?({_LITERAL}|({_NAME})*)(:\d*)?"
_PATH = f"({_PCHAR}|/)*"
_TAIL = rf"(\?({_PCHAR}|[/?])*)?(#({_PCHAR}|[/?])*)?"
_ROOTED = f"//{_AUTHORITY}(/{_PATH})?|/(({_PCHAR}){_PATH})?"
_URI = rf"[A-Za-z][A-Za-z0-9+.-]*:({_ROOTED}|(({_PCHAR}){_PATH})?){_TAIL}"
_REFERENCE = rf"({_ROOTED}|((([A-Za-z0-9._~{_SUB}@-]|{_PCT})+(/{_PATH})?)?)){_TAIL}"

FORMATS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"({_DATE})[Tt]{_TIME}",
    "duration": _DURATION,
    "email": _EMAIL,
    "hostname": _HOSTNAME,
    "uuid": r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "uri": _URI,
    "uri-reference": f"{_URI}|{_REFERENCE}",
    "json-pointer": r"(/([^/~]|~[01])*)*",
}
