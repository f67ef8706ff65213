//! What a run changes on the machine, written down before it is changed, so that whatever ends the run, the next one puts it
//! back.
//!
//! One file for the machine, JSON lines. Whoever has it open is the one run that may go on: the account is one, and so are the
//! lists and filters that are about it.

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, Write};

/// One thing that was changed, or was about to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Change {
    /// The access list of a node has entries of the account's; `owner` where one for owners was added, too.
    List { path: String, owner: bool },
    /// The filter of this key was added.
    Filter { key: String },
}

/// The open journal of a run.
#[derive(Debug)]
pub struct Journal(File);

impl Journal {
    /// Takes an open file, and says what a run that did not end by itself left.
    ///
    /// # Errors
    /// What reading fails with, and a line that is none of ours: what is to be put back is not known then. The last line may
    /// be cut off, as nothing is changed before its line is whole.
    pub fn open(file: File) -> io::Result<(Self, Vec<Change>)> {
        let mut journal = Self(file);
        let left = journal.written()?;
        Ok((journal, left))
    }

    /// All that is written down, in its order.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn written(&mut self) -> io::Result<Vec<Change>> {
        self.0.rewind()?;
        let mut left = Vec::new();
        let mut lines = BufReader::new(&mut self.0);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line)? > 0 {
            if line.last() == Some(&b'\n') {
                left.push(serde_json::from_slice(&line).map_err(io::Error::from)?);
            }
            line.clear();
        }
        Ok(left)
    }

    /// Writes changes down, for good, before they are made.
    ///
    /// # Errors
    /// Whatever writing fails with: none of them must be made.
    pub fn write(&mut self, changes: &[Change]) -> io::Result<()> {
        let mut lines = Vec::new();
        for change in changes {
            serde_json::to_writer(&mut lines, change)?;
            lines.push(b'\n');
        }
        self.0.seek(io::SeekFrom::End(0))?;
        self.0.write_all(&lines)?;
        self.0.sync_data()
    }

    /// Everything was put back.
    ///
    /// # Errors
    /// Whatever writing fails with.
    pub fn clear(&mut self) -> io::Result<()> {
        self.0.set_len(0)?;
        self.0.sync_data()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_written_is_left_for_the_next_run() {
        let file = || tempfile::tempfile().unwrap();
        let (mut journal, left) = Journal::open(file()).unwrap();
        assert_eq!(left, []);
        let changes = [
            Change::List { path: "C:/w/ü".to_owned(), owner: true },
            Change::Filter { key: "{6ad40ae1-4824-89e5-ae73-5a55bfd8ebd9}".to_owned() },
        ];
        journal.write(&changes).unwrap();
        // The run is killed while it writes.
        journal.0.write_all(b"{\"list\":{\"pa").unwrap();
        let (mut journal, left) = Journal::open(journal.0).unwrap();
        assert_eq!(left, changes);
        journal.clear().unwrap();
        journal.write(&changes[1..]).unwrap();
        let (_, left) = Journal::open(journal.0).unwrap();
        assert_eq!(left, changes[1..]);
    }

    #[test]
    fn a_line_that_is_not_known_is_an_error() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"{\"list\":{\"path\":\"C:/w\",\"owner\":false}}\n{\"other\":1}\n").unwrap();
        assert!(Journal::open(file).is_err());
    }
}
