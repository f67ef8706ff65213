//! Where a group may be made: in the group that this process is in, or one above it, as far as that was handed to us.
//!
//! - Under systemd (`/run/systemd/system`, sd_booted(3)) a unit was, if it says `Delegate=`; everything else is its own, and not touched
//!   (systemd's CGROUP_DELEGATION.md). The unit is the innermost `.service` or `.scope` that we are in, and what is below it.
//! - Elsewhere, whatever may be written to, up to what the mount shows: in a container, its own.
//!
//! A group that has a limit of its own is not left for one that has not, whoever set it.
//!
//! Only looks: nothing is changed here.

use super::{Lack, controllers, read};
use crate::backend::limits::Limits;
use crate::exec::linux::kernel;
use crate::ir::MountFact;
use crate::sets::path::AbsPath;
use nix::unistd::{AccessFlags, access};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The tree of control groups as this process sees it.
pub struct Hierarchy {
    mount: PathBuf,
    own: PathBuf,
    systemd: bool,
}

/// Where a group may be made, and what it is to hold there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub group: PathBuf,
    pub limits: Limits,
}

/// What a group is limited by, and what stands there where it is not (cgroup-v2.rst).
const LIMITS: [(&str, &str); 6] = [
    ("memory.max", "max"),
    ("memory.high", "max"),
    ("memory.swap.max", "max"),
    ("cpu.max", "max"),
    ("cpuset.cpus", ""),
    ("io.max", ""),
];

/// What it takes to have the controllers in a group's children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// They are there.
    There,
    /// Written into its `cgroup.subtree_control`.
    Enable,
    /// First, whoever is in it goes into a child: a group has either processes or children with controllers. All of them are this run's.
    StepAside,
}

impl Hierarchy {
    pub fn find(mounts: &[MountFact]) -> Result<Self, Lack> {
        let text = read("/proc/self/cgroup".into()).unwrap_or_default();
        Self::of(&text, mounts, Path::new("/run/systemd/system").exists())
    }

    /// From `/proc/self/cgroup` (cgroups(7)) and the mount table.
    fn of(text: &str, mounts: &[MountFact], systemd: bool) -> Result<Self, Lack> {
        let Some(path) = group_of(text) else { return Err(Lack::new("this kernel has no cgroup v2")) };
        let path_of = |path: &AbsPath| path.as_bytes().map(|bytes| PathBuf::from(OsString::from_vec(bytes)));
        let shown = mounts.iter().rev().filter(|mount| mount.kind == "cgroup2");
        let mut shown = shown.filter_map(|mount| {
            let below = Path::new(path).strip_prefix(path_of(&mount.root)?).ok()?;
            Some((path_of(&mount.at)?, below, mount.read_only))
        });
        let Some((mount, below, read_only)) = shown.next() else {
            return Err(Lack::new("no cgroup v2 is mounted that shows the group of this process"));
        };
        if read_only {
            let found = format!("{} is read-only", mount.display());
            return Err(Lack {
                found,
                mend: "in a container: docker run --privileged --cgroupns private, or a tool that delegates groups",
            });
        }
        // Without it, `/a` and not `/a/`.
        let own = if below.as_os_str().is_empty() { mount.clone() } else { mount.join(below) };
        Ok(Self { mount, own, systemd })
    }

    /// The group of this process.
    pub fn own(&self) -> PathBuf {
        self.own.clone()
    }

    /// Where it is mounted.
    pub fn mount(&self) -> &Path {
        &self.mount
    }

    /// The group of this path.
    pub fn below(&self, path: &str) -> PathBuf {
        self.mount.join(path)
    }

    pub fn has_systemd(&self) -> bool {
        self.systemd
    }

    /// The group that another process is in.
    pub fn of_process(&self, process: nix::unistd::Pid) -> Option<PathBuf> {
        let text = read(format!("/proc/{process}/cgroup").into()).ok()?;
        let path = group_of(&text)?.strip_prefix('/')?;
        // Where the mount shows all there is, as it does where systemd runs.
        Some(self.mount.join(path))
    }

    /// A group whose children can hold these limits, and what that takes: rather nothing.
    pub fn choose(&self, limits: &Limits) -> Result<(Place, How), Lack> {
        let is_delegated = |group: &Path| {
            [c"user.delegate", c"trusted.delegate"]
                .iter()
                .any(|name| kernel::attribute(group, name).is_ok_and(|value| value == b"1"))
        };
        let groups = self.handed_over(is_delegated)?.into_iter().filter(|group| is_ours(group));
        let places = groups.map(|group| self.without_leaving(group, limits)).collect::<Result<Vec<_>, _>>();
        // Whoever leaves one for the next leaves it for all above.
        let (places, lack) = match places {
            Ok(places) => (places, None),
            Err(lack) => (self.without_leaving(self.own(), limits).into_iter().collect(), Some(lack)),
        };
        let none = || {
            let controllers = controllers(limits).join(" and ");
            let held = if controllers.is_empty() { String::new() } else { format!(" that holds {controllers}") };
            Lack::new(format!("no group{held} may be made in {}", self.own.display()))
        };
        choose(&places, &is_this_run).ok_or_else(|| lack.unwrap_or_else(none))
    }

    /// A place below a group, for whoever is in ours.
    ///
    /// # Errors
    /// That would leave a limit behind. One of processes is no such thing: the new group has it too.
    pub fn without_leaving(&self, group: PathBuf, limits: &Limits) -> Result<Place, Lack> {
        let mut limits = limits.clone();
        for left in self.own.ancestors().take_while(|left| !group.starts_with(left)) {
            if let Some(name) = LIMITS
                .iter()
                .find(|(name, none)| read(left.join(name)).is_ok_and(|is| is.split(' ').next() != Some(none)))
            {
                let found = format!("{} has a limit of its own, `{}`, and is not left", left.display(), name.0);
                return Err(Lack::new(found));
            }
            if let Some(most) = read(left.join("pids.max")).ok().and_then(|most| most.parse().ok()) {
                limits.processes = Some(limits.processes.unwrap_or(u64::MAX).min(most));
            }
        }
        Ok(Place { group, limits })
    }

    /// Whether there are controllers at all where this process sees the tree begin.
    pub fn offers(&self, wanted: &[&str]) -> Result<(), Lack> {
        if has(&self.mount, "cgroup.controllers", wanted) {
            return Ok(());
        }
        let found = format!("cgroup v2 has no controllers of {} in {}", wanted.join(" and "), self.mount.display());
        Err(Lack { found, mend: "boot with `systemd.unified_cgroup_hierarchy=1`, and without `cgroup_disable=`" })
    }

    /// From the innermost.
    fn handed_over(&self, is_delegated: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, Lack> {
        let above = self.own.ancestors().take_while(|group| group.starts_with(&self.mount)).map(Path::to_owned);
        if !self.systemd {
            return Ok(above.collect());
        }
        let mut groups = Vec::new();
        for group in above {
            let is_unit = group.extension().is_some_and(|kind| kind == "service" || kind == "scope");
            groups.push(group);
            if is_unit {
                break;
            }
        }
        match groups.last() {
            Some(unit) if is_delegated(unit) => Ok(groups),
            _ => Err(Lack::new(format!("systemd has not delegated {}", self.own.display()))),
        }
    }
}

/// The path in the line of cgroup v2, which has no number and no controllers. Whose group is gone is in none.
fn group_of(text: &str) -> Option<&str> {
    text.lines()
        .find_map(|line| line.strip_prefix("0::"))
        .filter(|path| path.starts_with('/') && !path.ends_with(" (deleted)"))
}

/// Whether we may make groups in it, and put processes into them.
fn is_ours(group: &Path) -> bool {
    let may = |path: &Path| access(path, AccessFlags::W_OK).is_ok();
    may(group) && may(&group.join("cgroup.procs")) && may(&group.join("cgroup.subtree_control"))
}

/// The first that takes nothing, else the first that takes least. The first group is that of this process.
fn choose(places: &[Place], is_this_run: &dyn Fn(i32) -> bool) -> Option<(Place, How)> {
    let find =
        |can: &dyn Fn(&Place) -> bool, how| places.iter().find(|place| can(place)).map(|place| (place.clone(), how));
    let there = |place: &Place| has(&place.group, "cgroup.subtree_control", &controllers(&place.limits));
    let available = |place: &Place| has(&place.group, "cgroup.controllers", &controllers(&place.limits));
    // The root, which alone has no type, has processes beside children with controllers.
    let is_root = |place: &Place| !place.group.join("cgroup.type").exists();
    let all =
        |place: &Place, are: &dyn Fn(i32) -> bool| processes(&place.group).is_some_and(|all| all.into_iter().all(are));
    let enable = |place: &Place| available(place) && (is_root(place) || all(place, &|_| false));
    let step_aside = |place: &Place| places.first() == Some(place) && available(place) && all(place, is_this_run);
    find(&there, How::There).or_else(|| find(&enable, How::Enable)).or_else(|| find(&step_aside, How::StepAside))
}

/// Whether all of these are among the words of a file.
fn has(group: &Path, file: &str, wanted: &[&str]) -> bool {
    let words = read(group.join(file)).unwrap_or_default();
    wanted.iter().all(|wanted| words.split_ascii_whitespace().any(|word| word == *wanted))
}

/// Who is in a group, 0 for processes that have no number here.
pub fn processes(group: &Path) -> Option<Vec<i32>> {
    read(group.join("cgroup.procs")).ok()?.lines().map(|line| line.parse().ok()).collect()
}

/// Whether it is this process or one below it.
fn is_this_run(process: i32) -> bool {
    let own = nix::unistd::getpid().as_raw();
    let mut at = process;
    while at > 1 && at != own {
        let status = read(format!("/proc/{at}/status").into()).unwrap_or_default();
        at = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok()).unwrap_or(0);
    }
    at == own
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    fn mount(kind: &str, root: &str, at: &str) -> MountFact {
        let path = |text: &str| AbsPath::parse(text.as_bytes()).unwrap();
        MountFact { device: (0, 1), root: path(root), at: path(at), kind: kind.into(), read_only: false }
    }

    fn own(text: &str, mounts: &[MountFact]) -> Result<PathBuf, String> {
        Hierarchy::of(text, mounts, false).map(|found| found.own()).map_err(|lack| lack.to_string())
    }

    #[test]
    fn the_group_of_a_process_is_found_where_it_is_mounted() {
        let unified = [mount("tmpfs", "/", "/sys/fs/cgroup"), mount("cgroup2", "/", "/sys/fs/cgroup")];
        assert_eq!(own("0::/user.slice/a.scope\n", &unified).unwrap(), Path::new("/sys/fs/cgroup/user.slice/a.scope"));
        assert_eq!(own("0::/\n", &unified).unwrap(), Path::new("/sys/fs/cgroup"));
        let hybrid = [mount("cgroup", "/", "/sys/fs/cgroup/memory"), mount("cgroup2", "/", "/sys/fs/cgroup/unified")];
        assert_eq!(
            own("4:memory:/x\n1:name=systemd:/y\n0::/a b\n", &hybrid).unwrap(),
            Path::new("/sys/fs/cgroup/unified/a b")
        );
        // A part of it is mounted, as in a container without a namespace of its own.
        let part = [mount("cgroup2", "/docker/7", "/sys/fs/cgroup")];
        assert_eq!(own("0::/docker/7/x\n", &part).unwrap(), Path::new("/sys/fs/cgroup/x"));
        for (text, mounts) in [
            ("0::/elsewhere\n", &part[..]),
            ("0::/../outside\n", &part),
            ("4:memory:/x\n", &hybrid),
            ("0::/gone (deleted)\n", &unified),
            ("0::\n", &unified),
            ("", &unified),
            ("0::/\n", &[]),
        ] {
            assert!(own(text, mounts).is_err(), "{text}");
        }
        let read_only = [MountFact { read_only: true, ..mount("cgroup2", "/", "/c") }];
        assert_eq!(own("0::/\n", &read_only).unwrap_err(), "/c is read-only");
    }

    #[test]
    fn of_systemds_groups_those_alone_are_ours_that_it_delegated() {
        let in_group = |path: &str, systemd| Hierarchy { mount: "/c".into(), own: format!("/c{path}").into(), systemd };
        let ours = |path: &str, delegated: &str| {
            let is_delegated = |group: &Path| group == Path::new(delegated);
            let groups = in_group(path, true).handed_over(is_delegated).ok()?;
            Some(groups.iter().map(|group| group.display().to_string()).collect::<Vec<_>>().join(" "))
        };
        let user = "/user.slice/user-1.slice/user@1.service";
        // That the user's systemd has its own group says nothing of the units in it.
        assert_eq!(ours(&format!("{user}/app.slice/t.scope"), &format!("/c{user}")), None);
        assert_eq!(
            ours("/system.slice/a.service", "/c/system.slice/a.service").as_deref(),
            Some("/c/system.slice/a.service")
        );
        assert_eq!(
            ours("/system.slice/a.service/x/y", "/c/system.slice/a.service").as_deref(),
            Some("/c/system.slice/a.service/x/y /c/system.slice/a.service/x /c/system.slice/a.service")
        );
        assert_eq!(ours("", "/c"), Some("/c".into()));
        assert_eq!(ours("/system.slice/a.service/b.scope", "/c/system.slice/a.service"), None);
        assert_eq!(
            in_group("/a/b", false).handed_over(|_| false).unwrap(),
            ["/c/a/b", "/c/a", "/c"].map(PathBuf::from)
        );
    }

    /// A group of files.
    fn group(at: &Path, is_root: bool, available: &str, enabled: &str, processes: &str) -> PathBuf {
        fs::create_dir_all(at).unwrap();
        if !is_root {
            fs::write(at.join("cgroup.type"), "domain\n").unwrap();
        }
        for (name, text) in [("controllers", available), ("subtree_control", enabled), ("procs", processes)] {
            fs::write(at.join(format!("cgroup.{name}")), format!("{text}\n").trim_start()).unwrap();
        }
        at.to_owned()
    }

    #[test]
    fn what_changes_least_is_chosen() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let time = Limits { cpu: Some(1), ..Limits::default() };
        let memory = Limits { memory: Some(1), ..time.clone() };
        let both = Limits { processes: Some(1), ..memory.clone() };
        let chosen = |groups: &[&PathBuf], limits: &Limits| {
            let place = |group: &&PathBuf| Place { group: (*group).clone(), limits: limits.clone() };
            let places: Vec<Place> = groups.iter().map(place).collect();
            choose(&places, &|process| process == 7)
                .map(|(place, how)| (groups.iter().position(|one| **one == place.group).unwrap(), how))
        };
        let ready = group(&at("ready"), false, "cpu memory pids", "memory pids", "");
        let empty = group(&at("empty"), false, "memory pids", "memory", "");
        let alone = group(&at("alone"), false, "memory pids", "", "7");
        let with_others = group(&at("others"), false, "memory pids", "", "7\n8");
        let foreign = group(&at("foreign"), false, "memory pids", "", "7\n0");
        let root = group(&at("root"), true, "memory pids", "", "1\n7\n8");
        let bare = group(&at("bare"), true, "", "", "1\n7");
        assert_eq!(chosen(&[&alone, &ready], &both), Some((1, How::There)));
        assert_eq!(chosen(&[&with_others, &empty], &both), Some((1, How::Enable)));
        assert_eq!(chosen(&[&empty], &memory), Some((0, How::There)));
        assert_eq!(chosen(&[&alone, &root], &both), Some((1, How::Enable)));
        assert_eq!(chosen(&[&alone], &both), Some((0, How::StepAside)));
        assert_eq!(chosen(&[&with_others, &alone], &both), None, "only our own group is stepped aside in");
        assert_eq!(chosen(&[&foreign], &both), None);
        assert_eq!(chosen(&[&bare], &both), None);
        assert_eq!(chosen(&[&bare], &time), Some((0, How::There)), "time is counted without a controller");
        assert_eq!(chosen(&[&at("absent")], &both), None);
        assert_eq!(chosen(&[], &time), None);
    }

    #[test]
    fn a_limit_of_somebody_elses_is_not_left() {
        let folder = tempfile::tempdir().unwrap();
        let mount = folder.path().to_owned();
        let own = mount.join("a/b");
        fs::create_dir_all(&own).unwrap();
        let hierarchy = Hierarchy { mount: mount.clone(), own: own.clone(), systemd: false };
        let limits = Limits { memory: Some(9), processes: Some(100), ..Limits::default() };
        let leave = |to: &Path| hierarchy.without_leaving(to.to_owned(), &limits);
        assert_eq!(leave(&mount).unwrap().limits, limits);
        for (name, none, some) in
            [("memory.max", "max", "4096"), ("cpu.max", "max 100000", "50000 100000"), ("cpuset.cpus", "", "0-3")]
        {
            let file = mount.join("a").join(name);
            fs::write(&file, format!("{none}\n")).unwrap();
            assert!(leave(&mount).is_ok(), "{name}");
            fs::write(&file, format!("{some}\n")).unwrap();
            let lack = leave(&mount).unwrap_err().to_string();
            assert!(lack.contains(name) && lack.contains("/a has"), "{lack}");
            assert!(leave(&mount.join("a")).is_ok() && leave(&own).is_ok(), "{name}: it stays above");
            fs::remove_file(&file).unwrap();
        }
        for (most, held) in [("max", 100), ("200", 100), ("50", 50)] {
            fs::write(own.join("pids.max"), format!("{most}\n")).unwrap();
            assert_eq!(leave(&mount).unwrap().limits.processes, Some(held), "{most}");
            assert_eq!(leave(&own.join("c")).unwrap().limits.processes, Some(100));
        }
    }

    #[test]
    fn this_process_is_of_this_run() {
        let own = nix::unistd::getpid().as_raw();
        let parent = nix::unistd::getppid().as_raw();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(is_this_run(own) && is_this_run(child.id().cast_signed()));
        assert!(!is_this_run(parent) && !is_this_run(1) && !is_this_run(0) && !is_this_run(-1));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
