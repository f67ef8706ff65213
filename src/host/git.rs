//! The common directory of the repository that a workspace is, and where its hooks are, read from its files
//! (gitrepository-layout(5), git-config(1)) without running git. Files that a setting includes are not read.
//!
//! A workspace is writable, so its `.git` *file* proves nothing by itself: one run could make it name any directory, for
//! the next run to be allowed to write there. It is believed only if the directory it names says that it belongs to this
//! workspace.

use std::fs;
use std::path::{Path, PathBuf};

/// `GIT_COMMON_DIR`. For a workspace that is no repository, where its own would be. `None` when its `.git` file is not
/// to be believed, or leads nowhere.
#[allow(clippy::disallowed_methods)]
pub(super) fn common_directory(workspace: &Path) -> Option<PathBuf> {
    let dot_git = workspace.join(".git");
    let Ok(node) = fs::symlink_metadata(&dot_git) else { return Some(dot_git) };
    if !node.is_file() {
        // A directory, or a link that `bind` will judge like every other.
        return Some(dot_git);
    }
    let named = PathBuf::from(first_line(&dot_git)?.strip_prefix("gitdir:")?.trim_start().to_owned());
    let directory = fs::canonicalize(workspace.join(named)).ok()?;
    let believed = match first_line(&directory.join("commondir")) {
        Some(common) => worktree(workspace, &directory, &common)?,
        None => submodule(workspace, &directory)?,
    };
    let is = |name: &str| fs::symlink_metadata(believed.join(name));
    let repository =
        is("HEAD").is_ok() && is("objects").is_ok_and(|n| n.is_dir()) && is("refs").is_ok_and(|n| n.is_dir());
    repository.then_some(believed)
}

/// A linked worktree: `COMMON/worktrees/NAME`, whose `gitdir` file names the workspace's `.git`.
#[allow(clippy::disallowed_methods)]
fn worktree(workspace: &Path, directory: &Path, common: &str) -> Option<PathBuf> {
    let common = fs::canonicalize(directory.join(common)).ok()?;
    let inside = directory.parent() == Some(common.join("worktrees").as_path());
    let back = directory.join(first_line(&directory.join("gitdir"))?);
    let back = fs::canonicalize(back.parent()?).ok()?;
    (inside && back == fs::canonicalize(workspace).ok()?).then_some(common)
}

/// A submodule, or a repository made with `--separate-git-dir`: its configuration names the workspace.
#[allow(clippy::disallowed_methods)]
fn submodule(workspace: &Path, directory: &Path) -> Option<PathBuf> {
    let config = fs::read_to_string(directory.join("config")).ok()?;
    let tree = config.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        key.trim().eq_ignore_ascii_case("worktree").then(|| value.trim().trim_matches('"').to_owned())
    })?;
    let tree = fs::canonicalize(directory.join(tree)).ok()?;
    (tree == fs::canonicalize(workspace).ok()?).then(|| directory.to_owned())
}

/// Where `core.hooksPath` says that hooks are, by the last of some files of settings that names it: relative to the
/// workspace, `~/` the home. `None` for none, and for what is no directory (`/dev/null` is how people have no hooks).
#[allow(clippy::disallowed_methods)]
pub(super) fn hooks(settings: impl Iterator<Item = PathBuf>, home: Option<&Path>, workspace: &Path) -> Option<PathBuf> {
    let named = settings.filter_map(|file| setting(&fs::read_to_string(file).ok()?, "core", "hookspath")).last()?;
    let named = match named.strip_prefix("~/") {
        Some(below) => home?.join(below),
        None => workspace.join(&named),
    };
    // `.` and `..` are taken as written; links `bind` follows.
    let mut place = PathBuf::new();
    for component in named.components() {
        match component {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                place.pop();
            }
            other => place.push(other),
        }
    }
    (place != Path::new("/dev/null")).then_some(place)
}

/// The last value that a text of settings (git-config(1), "Syntax") gives a name of a section without a subsection.
fn setting(text: &str, section: &str, name: &str) -> Option<String> {
    let mut inside = false;
    let mut found = None;
    for line in text.lines().map(str::trim) {
        let mut line = line;
        if let Some(rest) = line.strip_prefix('[') {
            let Some((head, rest)) = rest.split_once(']') else { continue };
            inside = head.trim().eq_ignore_ascii_case(section);
            line = rest.trim_start();
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        if inside && key.trim().eq_ignore_ascii_case(name) {
            found = Some(plain(value.trim()));
        }
    }
    found.filter(|value| !value.is_empty())
}

/// A value without its quotes, escapes and comment.
fn plain(value: &str) -> String {
    let mut plain = String::new();
    let mut quoted = false;
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => quoted = !quoted,
            '\\' => plain.extend(letters.next()),
            '#' | ';' if !quoted => break,
            _ => plain.push(letter),
        }
    }
    plain.trim_end().to_owned()
}

#[allow(clippy::disallowed_methods)]
fn first_line(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().next().map(|line| line.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods)]
    use super::common_directory;
    use std::fs;
    use std::path::{Path, PathBuf};

    fn repository(at: &Path) -> PathBuf {
        for directory in ["objects", "refs"] {
            fs::create_dir_all(at.join(directory)).unwrap();
        }
        fs::write(at.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        at.to_owned()
    }

    struct Place {
        _directory: tempfile::TempDir,
        main: PathBuf,
        workspace: PathBuf,
    }

    /// A repository, and a worktree of it as `git worktree add` makes one.
    fn place() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        let main = repository(&root.join("main/.git"));
        let workspace = root.join("tree");
        fs::create_dir_all(&workspace).unwrap();
        let entry = main.join("worktrees/tree");
        fs::create_dir_all(&entry).unwrap();
        fs::write(entry.join("commondir"), "../..\n").unwrap();
        fs::write(entry.join("gitdir"), format!("{}\n", workspace.join(".git").display())).unwrap();
        fs::write(workspace.join(".git"), format!("gitdir: {}\n", entry.display())).unwrap();
        Place { _directory: directory, main, workspace }
    }

    #[test]
    fn a_linked_worktree_leads_to_its_repository() {
        let place = place();
        assert_eq!(common_directory(&place.workspace), Some(place.main));
    }

    #[test]
    fn hooks_are_where_the_last_setting_says() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            fs::write(directory.path().join(name), text).unwrap();
            directory.path().join(name)
        };
        let (home, workspace) = (Path::new("/home/u"), Path::new("/home/u/ws"));
        let hooks = |texts: &[&str]| {
            let files: Vec<_> = texts.iter().enumerate().map(|(at, text)| file(&at.to_string(), text)).collect();
            super::hooks(files.into_iter(), Some(home), workspace)
        };
        for (texts, expected) in [
            (&["[core]\n\thooksPath = .husky/_\n"][..], Some("/home/u/ws/.husky/_")),
            (&["[Core] hookspath=\"~/my hooks\" ; mine\n"], Some("/home/u/my hooks")),
            (
                &["[core]\nhooksPath = /srv/a\n", "[user]\nname = x\n[core]\n\thooksPath = ../b/./c # here\n"],
                Some("/home/u/b/c"),
            ),
            (&["[core \"x\"]\n\thooksPath = /srv/a\n", "[other]\nhooksPath = /srv/a\n"], None),
            (&["[core]\n\thooksPath = /dev/null\n"], None),
            (&["[core]\n\thooksPath =\n"], None),
            (&[""], None),
        ] {
            assert_eq!(hooks(texts).as_deref(), expected.map(Path::new), "{texts:?}");
        }
    }

    #[test]
    fn a_workspace_without_a_git_file_has_its_own() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(common_directory(directory.path()), Some(directory.path().join(".git")));
        repository(&directory.path().join(".git"));
        assert_eq!(common_directory(directory.path()), Some(directory.path().join(".git")));
    }

    #[test]
    fn a_forged_git_file_is_not_believed() {
        let place = place();
        let other = repository(&place.workspace.parent().unwrap().join("other/.git"));
        fs::write(place.workspace.join(".git"), format!("gitdir: {}\n", other.display())).unwrap();
        assert_eq!(common_directory(&place.workspace), None, "another repository");

        let secret = place.workspace.parent().unwrap().join("secret");
        fs::create_dir_all(&secret).unwrap();
        let fake = place.workspace.join("fake/worktrees/x");
        fs::create_dir_all(&fake).unwrap();
        fs::write(fake.join("commondir"), format!("{}\n", secret.display())).unwrap();
        fs::write(fake.join("gitdir"), format!("{}\n", place.workspace.join(".git").display())).unwrap();
        fs::write(place.workspace.join(".git"), format!("gitdir: {}\n", fake.display())).unwrap();
        assert_eq!(common_directory(&place.workspace), None, "a common directory that does not hold the worktree");
    }

    #[test]
    fn another_workspaces_entry_is_not_believed() {
        let place = place();
        let thief = place.workspace.parent().unwrap().join("thief");
        fs::create_dir_all(&thief).unwrap();
        fs::copy(place.workspace.join(".git"), thief.join(".git")).unwrap();
        assert_eq!(common_directory(&thief), None);
    }

    #[test]
    fn a_submodule_leads_to_its_own() {
        let place = place();
        let modules = repository(&place.main.join("modules/sub"));
        let sub = place.main.parent().unwrap().join("sub");
        fs::create_dir_all(&sub).unwrap();
        fs::write(sub.join(".git"), "gitdir: ../.git/modules/sub\n").unwrap();
        assert_eq!(common_directory(&sub), None, "it does not say whose it is");
        fs::write(modules.join("config"), "[core]\n\tworktree = ../../../sub\n").unwrap();
        assert_eq!(common_directory(&sub), Some(modules));
    }
}
