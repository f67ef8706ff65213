//! `--settings FILE` and `~/.srt-settings.json`: a settings file of the npm package, as policy texts that go the same way as
//! a policy file and are shown under the keys they come from.

use super::{files, output};
use sandbox_runtime::compat::{Gravity, Places, Said, Text, Translation, settings};
use sandbox_runtime::host::real::home;
use sandbox_runtime::resolve::KEEP_OTHERS_OUT;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// The settings in a file, for a command that is started in `directory`. What has no counterpart is said, once.
///
/// # Errors
/// A sentence for the command line: the file cannot be read, or cannot be used as it is, which has then been said.
pub fn texts(path: &Path, directory: &Path) -> Result<Vec<Text>, String> {
    let shown = path.display().to_string();
    let text = files::read(path).map_err(|error| format!("cannot read the settings `{shown}`: {error}"))?;
    if text.writable_by_others {
        return Err(format!(
            "refusing the settings `{shown}`: someone else may write them, or put others in their place; \
             read what they say, then {KEEP_OTHERS_OUT} the file and on the directory it is in"
        ));
    }
    let real = |path: &Path| std::fs::canonicalize(path).ok().and_then(|path| path.to_str().map(str::to_owned));
    let workspace = real(directory).ok_or_else(|| format!("cannot name `{}` in a policy", directory.display()))?;
    let home = home().and_then(|home| home.to_str().map(str::to_owned));
    let places = Places { workspace: Some(&workspace), home: home.as_deref() };
    let translation = settings::translate(&text.text, places, real(path).as_deref());
    if translation.refused() {
        for said in translation.said.iter().filter(|said| said.gravity == Gravity::Refused) {
            output::complain(sentence(&shown, said));
        }
        return Err(format!("cannot use the settings `{shown}` as they are"));
    }
    static SAID: Once = Once::new();
    SAID.call_once(|| announce(&shown, &translation));
    Ok(translation.texts(&shown))
}

/// What is not as the file may be thought to say.
fn announce(shown: &str, translation: &Translation) {
    for said in &translation.said {
        output::complain(sentence(shown, said));
    }
    for named in &translation.named {
        if files::is_there(Path::new(&named.path)).is_ok_and(|there| !there) {
            let (place, path) = (&named.place, &named.path);
            output::complain(format_args!(
                "{shown}:{}:{}: {}: `{path}` is not there, so that the command can make it",
                place.line, place.column, place.key
            ));
        }
    }
}

/// What is said about a key, with its place.
pub fn sentence(shown: &str, said: &Said) -> String {
    let place = &said.place;
    let key = if place.key.is_empty() { String::new() } else { format!("{}: ", place.key) };
    let looser = if said.gravity == Gravity::Looser { "looser: " } else { "" };
    format!("{shown}:{}:{}: {key}{looser}{}", place.line, place.column, said.message)
}

/// `~/.srt-settings.json`, where the package looks for its settings.
pub fn of_home() -> Option<PathBuf> {
    Some(home()?.join(".srt-settings.json"))
}
