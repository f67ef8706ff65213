"""Decides accesses to files as Windows does, from the access lists that `srt` emits: Samba's access check, and inheritance as
[MS-DTYP] section 2.5.3.4 lays it down.

Uses nothing of srt's. Reads one JSON object a line: {"lists": ARTEFACT, "accesses": [{"path", "directory", "operation"}]};
writes one JSON list of booleans a line. All directories above a path are there. Run by a Python that has Samba's modules.
"""

import json
import sys

from samba.dcerpc import security
from samba.security import access_check

ACCOUNT = "S-1-5-21-111-222-333-1001"
PERSON = "S-1-5-21-111-222-333-1000"
OI, CI, NP, IO, INHERITED = 0x01, 0x02, 0x04, 0x08, 0x10
FLAGS = {"OI": OI, "CI": CI, "NP": NP, "IO": IO}

# What a program asks for when it does something (CreateFile, CreateProcess and DeleteFile).
READ = 0x120089  # FILE_GENERIC_READ
WRITE = 0x120116  # FILE_GENERIC_WRITE
ATTRIBUTES = 0x100 | 0x10 | 0x100000
EXECUTE = 0x20 | 0x80 | 0x100000
ADD_FILE, ADD_DIRECTORY, DELETE_CHILD, DELETE, WRITE_DAC, WRITE_OWNER = 0x2, 0x4, 0x40, 0x10000, 0x40000, 0x80000

TOKEN = security.token()
# The account, everyone, the local accounts' group and whoever has logged in.
TOKEN.sids = [security.dom_sid(sid) for sid in (ACCOUNT, "S-1-1-0", "S-1-5-32-545", "S-1-5-11")]
TOKEN.num_sids = 4


def parsed(text):
    """An entry of the artefact, as (denies, flags, mask, sid)."""
    kind, flags, mask, object_type, inherited_type, sid = text.removeprefix("(").removesuffix(")").split(";")
    assert kind in "AD" and not object_type and not inherited_type, text
    bits = 0
    for at in range(0, len(flags), 2):
        bits |= FLAGS[flags[at : at + 2]]
    sid = {"$ACCOUNT": ACCOUNT, "OW": "S-1-3-4"}[sid]
    return (kind == "D", bits, int(mask, 16), sid)


def canonical(entries):
    """Explicit denials before explicit permissions; the rest is as it was inherited."""
    return sorted(entries, key=lambda entry: not entry[0])


def inherited(parent, directory):
    """What a node takes from the list of its parent, in the parent's order."""
    taken = []
    for denies, flags, mask, sid in parent:
        if directory:
            if flags & CI:
                flags = 0 if flags & NP else flags & (OI | CI)
            elif flags & OI and not flags & NP:
                flags = OI | IO
            else:
                continue
        elif flags & OI:
            flags = 0
        else:
            continue
        taken.append((denies, flags | INHERITED, mask, sid))
    return taken


# What a person's disk has: the system, administrators and the person may do everything.
BASE = [(False, OI | CI, 0x1F01FF, sid) for sid in ("S-1-5-18", "S-1-5-32-544", PERSON)]


class Disk:
    def __init__(self, artefact):
        self.own = {}
        for entry in artefact["entries"]:
            assert entry["path"] not in self.own, entry["path"]
            self.own[entry["path"]] = [parsed(ace["sddl"]) for ace in entry["aces"]]
        self.known = {}

    @staticmethod
    def parent(path):
        """The directory above; nothing above a variable's place or a drive. `C:/` is the root of a drive, `C:/a` is in it."""
        parent = path.rpartition("/")[0]
        if len(parent) == 2 and parent.endswith(":"):
            return None if path.endswith("/") else parent + "/"
        return parent or None

    def acl(self, path, directory):
        if (path, directory) not in self.known:
            parent = self.parent(path)
            above = inherited(self.acl(parent, True), directory) if parent else list(BASE)
            self.known[path, directory] = canonical(self.own.get(path, [])) + above
        return self.known[path, directory]

    def may(self, path, directory, mask, owner=PERSON):
        aces = []
        for denies, flags, bits, sid in self.acl(path, directory):
            ace = security.ace()
            ace.type = security.SEC_ACE_TYPE_ACCESS_DENIED if denies else security.SEC_ACE_TYPE_ACCESS_ALLOWED
            ace.flags = flags
            ace.access_mask = bits
            ace.trustee = security.dom_sid(sid)
            aces.append(ace)
        acl = security.acl()
        acl.revision = security.SECURITY_ACL_REVISION_NT4
        acl.aces = aces
        acl.num_aces = len(aces)
        descriptor = security.descriptor()
        descriptor.owner_sid = security.dom_sid(owner)
        descriptor.group_sid = security.dom_sid(owner)
        descriptor.type |= security.SEC_DESC_DACL_PRESENT
        descriptor.dacl = acl
        try:
            access_check(descriptor, TOKEN, mask)
            return True
        except Exception:
            return False

    def decided(self, access):
        path, directory = access["path"], access["directory"]
        may = lambda mask: self.may(path, directory, mask)
        operation = access["operation"]
        if operation == "read":
            return may(READ)
        if operation == "write":
            return may(ATTRIBUTES if directory else WRITE)
        if operation == "execute":
            return may(EXECUTE)
        if operation == "create":
            return may(ADD_FILE) and may(ADD_DIRECTORY)
        if operation == "remove":
            parent = self.parent(path)
            return may(DELETE) or parent is not None and self.may(parent, True, DELETE_CHILD)
        if operation == "take":
            return may(WRITE_DAC) or may(WRITE_OWNER)
        if operation == "own":
            # What the command has made itself belongs to it.
            return self.may(path, directory, WRITE_DAC, ACCOUNT)
        raise ValueError(operation)


def main():
    for line in sys.stdin:
        case = json.loads(line)
        disk = Disk(case["lists"])
        print(json.dumps([disk.decided(access) for access in case["accesses"]]))


main()
