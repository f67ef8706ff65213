#![allow(clippy::unwrap_used)]

use super::*;
use crate::backend::bubblewrap::{Needs, Root, lower};
use crate::bind::bind;
use crate::host::nominal;
use crate::resolve::{Options, STD, resolve, tests::Texts};
use crate::source::Sources;
use crate::vocabulary::System;
use std::collections::BTreeMap;

const LISTING: &str = "\
f /home/user/workspace/.env
d /home/user/workspace/.git/hooks
d /home/user/workspace/out
d /home/user/workspace/secret/open
f /home/user/workspace/secret/key
l /home/user/workspace/link -> /srv/x
d /srv/x
d /data/x
";

const POLICY: &str = "srt 1
use std/system
default read deny
allow read, write $WORKSPACE
deny read $WORKSPACE/.env
deny write $WORKSPACE/.git/hooks
deny write $WORKSPACE/**/*.lock
deny read $WORKSPACE/secret
allow read $WORKSPACE/secret/open
deny exec $WORKSPACE/out
deny write below $WORKSPACE/out
deny write $WORKSPACE/**/link
allow read below /srv
allow read /data
allow write below /data
";

fn bound(text: &str) -> BoundPolicy {
    let mut sources = Sources::default();
    let given = sources.add("a.policy", text);
    let options = Options { system: System::Linux, defines: BTreeMap::new() };
    let policy = resolve(&[given], &mut sources, &Texts(&[]), &options).0.unwrap();
    bind(policy, &nominal().with(LISTING).unwrap()).0.unwrap()
}

#[test]
fn each_module_is_held() {
    for (name, text) in STD {
        for default in ["allow", "deny"] {
            let text = if *name == "default" {
                (*text).to_owned()
            } else {
                format!("srt 1\nuse std/system\nuse std/{name}\ndefault read {default}\nallow read, write $WORKSPACE\n")
            };
            let policy = bound(&text);
            let lowered = lower(&policy, &Needs::default()).unwrap();
            assert_eq!(prove(&policy, &lowered.plan, &lowered.gaps), Ok(()), "std/{name}, {default}");
        }
    }
}

#[test]
fn nothing_of_the_runs_own_is_there_for_nothing() {
    let policy = bound("srt 1\ndefault read allow\ndeny read [/proc, /dev, /tmp]\n");
    let lowered = lower(&policy, &Needs::default()).unwrap();
    assert_eq!(prove(&policy, &lowered.plan, &lowered.gaps), Ok(()));
    for shown in [
        Mount::Proc,
        Mount::Devices { nodes: Vec::new() },
        Mount::Private { path: b"/tmp".to_vec(), mode: 0o1777, exec: true },
    ] {
        let mut plan = lowered.plan.clone();
        plan.mounts.push(shown.clone());
        assert!(prove(&policy, &plan, &lowered.gaps).is_err(), "{shown:?}");
    }
    let policy = bound("srt 1\ndefault read allow\ndeny read /dev/random\n");
    let lowered = lower(&policy, &Needs::default()).unwrap();
    let mut plan = lowered.plan.clone();
    let nodes = plan.mounts.iter_mut().find_map(|mount| match mount {
        Mount::Devices { nodes } => Some(nodes),
        _ => None,
    });
    nodes.unwrap().push("random".to_owned());
    assert_eq!(prove(&policy, &lowered.plan, &lowered.gaps), Ok(()));
    assert!(prove(&policy, &plan, &lowered.gaps).is_err());
}

#[test]
fn each_mistake_is_seen() {
    let policy = bound(POLICY);
    let lowered = lower(&policy, &Needs::default()).unwrap();
    assert_eq!(prove(&policy, &lowered.plan, &lowered.gaps), Ok(()));
    let workspace = |path: &str| format!("/home/user/workspace{path}").into_bytes();
    let remove = |plan: &mut Plan, wanted: &dyn Fn(&Mount) -> bool| {
        let before = plan.mounts.len();
        plan.mounts.retain(|mount| !wanted(mount));
        assert_eq!(plan.mounts.len() + 1, before);
    };
    let is_bind = |mount: &Mount, wanted: &[u8]| matches!(mount, Mount::Bind { path, .. } if path == wanted);
    let turn = |plan: &mut Plan, wanted: &[u8]| {
        let found = plan.mounts.iter_mut().find_map(|mount| match mount {
            Mount::Bind { path, write, .. } if path == wanted => Some(write),
            _ => None,
        });
        let write = found.unwrap();
        *write = !*write;
    };
    let shift = |plan: &mut Plan, from: &[u8], to: &[u8]| {
        let found = plan.mounts.iter_mut().find_map(|mount| match mount {
            Mount::Bind { path, .. } if path == from => Some(path),
            _ => None,
        });
        *found.unwrap() = to.to_vec();
    };
    type Mistake<'m> = (&'m str, &'m dyn Fn(&mut Plan));
    let mistakes: [Mistake<'_>; 16] = [
        ("a mask is left out", &|plan| {
            remove(plan, &|mount| matches!(mount, Mount::MaskFile { path, .. } if *path == workspace("/.env")));
        }),
        ("a closed directory is left out", &|plan| {
            remove(plan, &|mount| matches!(mount, Mount::EmptyDirectory { path, .. } if *path == workspace("/secret")));
        }),
        ("what is open in a closed one is left out", &|plan| {
            remove(plan, &|mount| is_bind(mount, &workspace("/secret/open")));
        }),
        ("a read-only one is writable", &|plan| turn(plan, &workspace("/.git/hooks"))),
        ("a writable one is read-only", &|plan| turn(plan, &workspace(""))),
        ("what is read-only is so further up", &|plan| {
            shift(plan, &workspace("/.git/hooks"), &workspace("/.git"));
        }),
        ("what is writable is so further up", &|plan| shift(plan, &workspace(""), b"/home/user")),
        ("a mask is beside its file", &|plan| {
            let at = plan.mounts.iter_mut().find_map(|mount| match mount {
                Mount::MaskFile { path, .. } => Some(path),
                _ => None,
            });
            *at.unwrap() = workspace("/.enw");
        }),
        ("what is not to be run can be", &|plan| {
            let run = plan.mounts.iter_mut().find_map(|mount| match mount {
                Mount::Bind { exec, .. } if !*exec => Some(exec),
                _ => None,
            });
            *run.unwrap() = true;
        }),
        ("Landlock has no place to write in", &|plan| plan.landlock.as_mut().unwrap().write.clear()),
        ("Landlock has no place to run from", &|plan| plan.landlock.as_mut().unwrap().exec.clear()),
        ("an outer one comes after an inner one", &|plan| {
            let at = plan.mounts.iter().position(|mount| is_bind(mount, &workspace(""))).unwrap();
            let mount = plan.mounts.remove(at);
            plan.mounts.push(mount);
        }),
        ("the root is the host's", &|plan| plan.root = Root::Host { exec: false }),
        ("the root can be listed", &|plan| {
            let Root::Empty { listable } = &mut plan.root else { panic!("{:?}", plan.root) };
            *listable = !*listable;
        }),
        ("a tree of the host's is one of the run's own", &|plan| {
            let at = plan.mounts.iter().position(|mount| is_bind(mount, &workspace("/secret/open"))).unwrap();
            plan.mounts[at] = Mount::Private { path: workspace("/secret/open"), mode: 0o755, exec: false };
        }),
        ("the host's is shown in `/dev`", &|plan| {
            let Some(Mount::Bind { node, .. }) = plan.mounts.iter().find(|mount| is_bind(mount, &workspace(""))) else {
                panic!()
            };
            plan.mounts.push(Mount::Bind { path: b"/dev/x".to_vec(), node: *node, write: true, exec: false });
        }),
    ];
    for (mistake, make) in mistakes {
        let mut plan = lowered.plan.clone();
        make(&mut plan);
        assert!(prove(&policy, &plan, &lowered.gaps).is_err(), "{mistake}");
    }
    // Nor is a gap left unsaid.
    for code in [&LATER_NAMES, &DIRECTORY_ATTRIBUTES, &DIRECTORY_ALONE, &DIRECTORY_LISTING, &REPLACEABLE_LINK] {
        let said: Vec<usize> = (0..lowered.gaps.len()).filter(|at| lowered.gaps[*at].code == code).collect();
        assert!(!said.is_empty(), "{}", code.name);
        for at in said {
            let mut gaps = lowered.gaps.clone();
            let left = gaps.remove(at);
            assert!(prove(&policy, &lowered.plan, &gaps).is_err(), "{left:?}");
        }
    }
}
