//! One file a known escape, each shown to succeed when its defence is taken out.
