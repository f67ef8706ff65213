//! Which file a command's first word names: as a shell of the system finds it, but never in the current directory by itself.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// What `PATHEXT` is where it is not set.
const ENDINGS: &str = ".COM;.EXE;.BAT;.CMD";

/// The file; `None` where there is none. `variable` gives the command's own environment, `is_file` looks.
pub fn find(
    word: &str,
    directory: &Path,
    variable: impl Fn(&str) -> Option<String>,
    is_file: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let endings = variable("PATHEXT").unwrap_or_else(|| ENDINGS.to_owned());
    let endings: Vec<&str> = endings.split(';').filter(|ending| ending.starts_with('.')).collect();
    let ends = |path: &Path| {
        let has = path.extension().and_then(OsStr::to_str);
        has.is_some_and(|has| endings.iter().any(|ending| ending[1..].eq_ignore_ascii_case(has)))
    };
    let named = |path: PathBuf| {
        // A file without an ending is no program here, though it may be there (npm puts scripts for other shells beside).
        let mut names = if ends(&path) { vec![path.clone()] } else { Vec::new() };
        names.extend(endings.iter().map(|ending| {
            let mut name = path.clone().into_os_string();
            name.push(ending.to_ascii_lowercase());
            PathBuf::from(name)
        }));
        names.into_iter().find(|name| is_file(name))
    };
    if word.contains(['/', '\\', ':']) {
        return named(directory.join(word));
    }
    let path = variable("PATH").unwrap_or_default();
    let places = path.split(';').map(|place| place.trim_matches('"')).filter(|place| Path::new(place).is_absolute());
    places.map(|place| Path::new(place).join(word)).find_map(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path that is absolute on the machine the test is built for.
    fn at(path: &str) -> String {
        if cfg!(windows) { format!("C:{path}") } else { path.to_owned() }
    }

    fn found(word: &str, path: &str, endings: Option<&str>, files: &[&str]) -> Option<String> {
        let files: Vec<PathBuf> = files.iter().map(|file| PathBuf::from(at(file))).collect();
        let variable = |name: &str| match name {
            "PATH" => Some(path.to_owned()),
            "PATHEXT" => endings.map(str::to_owned),
            _ => None,
        };
        let found = find(word, Path::new(&at("/here")), variable, |path| files.iter().any(|file| file == path));
        found.map(|path| path.to_string_lossy().replace('\\', "/").trim_start_matches("C:").to_owned())
    }

    #[test]
    fn programs_are_found_by_the_path_and_its_endings() {
        let path = format!("relative;{};\"{}\"", at("/a"), at("/b c"));
        let files = ["/a/npm", "/a/npm.cmd", "/b c/node.exe", "/here/git.exe", "/here/tool.exe", "/relative/x.exe"];
        for (word, expected) in [
            ("npm", Some("/a/npm.cmd")),
            ("node", Some("/b c/node.exe")),
            ("node.exe", Some("/b c/node.exe")),
            // Not from the current directory, where anybody may have put one.
            ("git", None),
            ("x", None),
            ("./tool", Some("/here/./tool.exe")),
            ("missing", None),
        ] {
            assert_eq!(found(word, &path, None, &files).as_deref(), expected, "{word}");
        }
        assert_eq!(found("npm", &path, Some(".EXE"), &files), None);
    }
}
