//! placeholder
pub(super) fn format(text: &str) -> String {
    text.to_owned()
}
