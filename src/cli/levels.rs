//! `-A`, `-W` and `-D`: the level that a code has in this run.

use super::arguments::Levels;
use sandbox_runtime::diagnostic::{Diagnostic, Level, nearest};
use sandbox_runtime::lint::ESCAPES;

impl Levels {
    /// Refuses codes that don't exist.
    ///
    /// # Errors
    /// A sentence for the command line.
    pub fn validate(&self) -> Result<(), String> {
        let codes = sandbox_runtime::codes();
        for name in self.allow.iter().chain(&self.warn).chain(&self.deny) {
            if name == "warnings" || codes.iter().any(|code| code.name == name) {
                continue;
            }
            let near = nearest(name, codes.iter().map(|code| code.name));
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(format!("there is no finding `{name}`{hint}"));
        }
        Ok(())
    }

    /// Sets levels, and leaves out what is allowed. An error that a comment could not accept (syntax, names, proofs, …) stays
    /// one: a policy that cannot be read is not made readable by a flag.
    pub fn apply(&self, diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let has = |list: &[String], name: &str| list.iter().any(|entry| entry == name);
        diagnostics
            .into_iter()
            .filter_map(|mut diagnostic| {
                let name = diagnostic.code.name;
                if diagnostic.code.level == Level::Error && !ESCAPES.contains(&diagnostic.code) {
                    return Some(diagnostic);
                }
                if has(&self.deny, name) {
                    diagnostic.level = Level::Error;
                } else if has(&self.warn, name) {
                    diagnostic.level = Level::Warning;
                } else if has(&self.allow, name) || (has(&self.allow, "warnings") && diagnostic.level == Level::Warning)
                {
                    return None;
                }
                if diagnostic.level == Level::Warning && has(&self.deny, "warnings") {
                    diagnostic.level = Level::Error;
                }
                Some(diagnostic)
            })
            .collect()
    }
}
