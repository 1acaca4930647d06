//! Reads what is judged: a file of the tree by its plain name, or the final message. Nothing is
//! read through a symbolic link: the tree's digest would not change with what is behind it.

use std::fmt;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use super::MAX_DOCUMENT;
use super::document::UncheckableDocumentError;
use crate::tree::is_valid_tree_path;
use crate::{VerifierDefinitionError, regular_file};

/// The word for the final message.
const MESSAGE: &str = "message";

/// See [`FileOrMessageSchemaTarget::parse_schema_target`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileOrMessageSchemaTarget {
    /// A file, `/`-separated, below the root.
    File(String),
    Message,
}

impl FileOrMessageSchemaTarget {
    pub(super) fn parse_schema_target(text: &str) -> Result<Self, VerifierDefinitionError> {
        if text == MESSAGE {
            return Ok(Self::Message);
        }
        let wrong = |what: &str| {
            Err(VerifierDefinitionError::Target {
                what: format!("'{text}' {what}"),
            })
        };
        if text.trim().is_empty() {
            return Err(VerifierDefinitionError::Empty { key: "target" });
        }
        // A target is one document, which findings name.
        if text.contains(['*', '?', '[', ']', '{', '}', '\\']) {
            return wrong("is a pattern; write the name of one file, or \"message\"");
        }
        if !is_valid_tree_path(text) {
            return wrong(
                "is no name of a file of the tree; write it from the config's folder on, without . and ..",
            );
        }
        Ok(Self::File(text.to_owned()))
    }

    pub(super) fn schema_target_file(&self) -> Option<String> {
        match self {
            Self::File(name) => Some(name.clone()),
            Self::Message => None,
        }
    }

    pub(super) fn target_document_name(&self) -> &str {
        match self {
            Self::File(name) => name,
            Self::Message => MESSAGE,
        }
    }

    /// Returns whether the file is Markdown, judged by its extension.
    pub(super) fn is_markdown(&self) -> bool {
        let ending = Path::new(self.target_document_name()).extension();
        let ending = ending.map(|ending| ending.to_string_lossy().to_lowercase());
        matches!(self, Self::File(_)) && matches!(ending.as_deref(), Some("md" | "markdown"))
    }
}

impl fmt::Display for FileOrMessageSchemaTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(name) => formatter.write_str(name),
            Self::Message => formatter.write_str("the final message"),
        }
    }
}

/// Reads the file's text.
pub(super) fn read_document_to_validate(
    root: &Path,
    name: &str,
) -> Result<String, UncheckableDocumentError> {
    let mut path = root.to_owned();
    let mut parts = name.split('/').peekable();
    while let Some(part) = parts.next() {
        path.push(part);
        // Component by component, since a folder on the way may be a link too.
        let found = match std::fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(error) if is_not_found_error(&error) => {
                return Err(UncheckableDocumentError::new(
                    "missing",
                    format!("{name} is not there: write it"),
                ));
            }
            Err(error) => {
                return Err(UncheckableDocumentError::new(
                    "unreadable",
                    format!("{name} cannot be read: {error}"),
                ));
            }
        };
        let what = if found.is_symlink() {
            "is reached through a symbolic link, which is not followed: put the file itself there"
        } else if parts.peek().is_some() && !found.is_dir() {
            "is not there, since a file stands where a folder is meant: write it"
        } else if parts.peek().is_none() && !found.is_file() {
            "is no regular file: put a file there"
        } else {
            continue;
        };
        return Err(UncheckableDocumentError::new(
            "no-file",
            format!("{name} {what}"),
        ));
    }
    let unreadable = |error: std::io::Error| {
        UncheckableDocumentError::new("unreadable", format!("{name} cannot be read: {error}"))
    };
    // The last component is tested again at the open: it may have been replaced in between.
    let file = regular_file::open_no_follow(&path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    // One byte more than allowed tells a file at the limit from a longer one.
    file.take(MAX_DOCUMENT as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() > MAX_DOCUMENT {
        return Err(schema_target_too_large_error(name));
    }
    String::from_utf8(bytes).map_err(|error| {
        // The line of the first invalid byte, so that it can be found in an editor.
        let good = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..good).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        UncheckableDocumentError {
            id: "utf-8",
            line: u32::try_from(line).ok(),
            what: format!("{name} is not UTF-8 text"),
        }
    })
}

/// Returns the final message if it is small enough to be judged.
pub(super) fn check_final_message_size(text: &str) -> Result<String, UncheckableDocumentError> {
    if text.len() > MAX_DOCUMENT {
        return Err(schema_target_too_large_error("the final message"));
    }
    Ok(text.to_owned())
}

fn schema_target_too_large_error(name: &str) -> UncheckableDocumentError {
    let limit = MAX_DOCUMENT >> 20;
    UncheckableDocumentError::new(
        "too-large",
        format!("{name} is larger than {limit} MiB: make it shorter"),
    )
}

fn is_not_found_error(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_plain_names() {
        assert_eq!(
            FileOrMessageSchemaTarget::parse_schema_target("message").unwrap(),
            FileOrMessageSchemaTarget::Message
        );
        let file = FileOrMessageSchemaTarget::parse_schema_target("out/report.json").unwrap();
        assert_eq!(
            file,
            FileOrMessageSchemaTarget::File("out/report.json".to_owned())
        );
        for bad in [
            "",
            " ",
            "/etc/passwd",
            "../a.json",
            "a/../b",
            "./a",
            "a//b",
            "out/",
            "*.json",
            "a\\b",
            ".git/config",
            ".checkrein/a.json",
        ] {
            assert!(
                FileOrMessageSchemaTarget::parse_schema_target(bad).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn markdown_is_told_by_the_name() {
        let check = |name: &str, expected| {
            assert_eq!(
                FileOrMessageSchemaTarget::parse_schema_target(name)
                    .unwrap()
                    .is_markdown(),
                expected,
                "{name}"
            );
        };
        check("a.md", true);
        check("out/A.MARKDOWN", true);
        check("a.json", false);
        check("md", false);
    }
}
