# Tries operations and says how each ended: 0, an errno, or -1 for content that is not the file's own. What succeeds
# is undone, so that every operation meets the tree as it was built; where undoing fails nothing more is tried.
#
# Arguments: the tree's directory; a list of [operation, path, other path], paths relative to it. Prints a list.
import ctypes, errno, json, mmap, os, stat, sys

libc = ctypes.CDLL(None, use_errno=True)
os.umask(0o022)


def keep(path):
    """What it takes to make the node at a path again; its content as far as it may be read."""
    try:
        seen = os.lstat(path)
    except OSError:
        return lambda: None
    mode = stat.S_IMODE(seen.st_mode)
    if stat.S_ISLNK(seen.st_mode):
        target = os.readlink(path)
        return lambda: os.symlink(target, path)
    if stat.S_ISDIR(seen.st_mode):
        return lambda: (os.mkdir(path), os.chmod(path, mode))
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError:
        content = b""

    def again():
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(fd, content)
        os.fchmod(fd, mode)
        os.close(fd)

    return again


def read(path, _):
    with open(path, "rb") as file:
        content = file.read(64)
    own = content.startswith(b"\x7fELF") or (content and path.endswith("/" + content.decode().rstrip()))
    if not own:
        raise OSError(-1, "other content")


def run(path, _):
    pid = os.posix_spawn(path, [path], {})
    if os.waitpid(pid, 0)[1] != 0:
        raise OSError(-1, "ended badly")


def map_as_code(path, _):
    fd = os.open(path, os.O_RDONLY)
    try:
        mmap.mmap(fd, 1, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()
    finally:
        os.close(fd)


def create(path, _):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    return lambda: os.unlink(path)


def modify(path, _):
    fd = os.open(path, os.O_WRONLY)
    try:
        first = b"\x7f" if path.endswith("/p") else path[len(BASE) + 1 :][:1].encode()
        os.pwrite(fd, first, 0)
    finally:
        os.close(fd)


def unlink(path, _):
    again = keep(path)
    os.unlink(path)
    return again


def rmdir(path, _):
    again = keep(path)
    os.rmdir(path)
    return again


def made(make):
    def one(path, _):
        make(path)
        return lambda: os.unlink(path)

    return one


def mkdir(path, _):
    os.mkdir(path)
    return lambda: os.rmdir(path)


def link(path, other):
    os.link(path, other)
    return lambda: os.unlink(other)


def rename(path, other):
    again = keep(other)
    os.rename(path, other)
    return lambda: (os.rename(other, path), again())


def exchange(path, other):
    def once():
        if libc.renameat2(-100, path.encode(), -100, other.encode(), 2) != 0:
            raise OSError(ctypes.get_errno(), "renameat2")

    once()
    return once


OPERATIONS = {
    "read": read,
    "list": lambda path, _: os.listdir(path) and None,
    "exec": run,
    "map": map_as_code,
    "create": create,
    "modify": modify,
    "truncate": lambda path, _: os.truncate(path, os.stat(path).st_size),
    "chmod": lambda path, _: os.chmod(path, stat.S_IMODE(os.stat(path).st_mode)),
    "utimes": lambda path, _: os.utime(path, (10**9, 10**9)),
    "xattr": lambda path, _: os.setxattr(path, b"user.t", b"x"),
    "unlink": unlink,
    "rmdir": rmdir,
    "mkdir": mkdir,
    "symlink": made(lambda path: os.symlink("anything", path)),
    "regular": made(lambda path: os.mknod(path, stat.S_IFREG | 0o644)),
    "fifo": made(os.mkfifo),
    "link": link,
    "rename": rename,
    "replace": rename,
    "exchange": exchange,
}

BASE = sys.argv[1]
results = []
for kind, path, other in json.loads(sys.argv[2]):
    undo = None
    path, other = f"{BASE}/{path}", f"{BASE}/{other}"
    try:
        undo = OPERATIONS[kind](path, other)
        results.append(0)
    except OSError as error:
        results.append(error.errno)
    try:
        if undo:
            undo()
    except OSError as error:
        sys.stderr.write(f"{kind} {path} {other} cannot be undone: {error}\n")
        break
print(json.dumps(results))
