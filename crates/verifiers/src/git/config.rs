//! Reads the settings of a repository's config that say how its index is read. Git takes them from
//! this one file and ignores its includes for them.

/// The settings that matter here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GitRepositoryConfig {
    /// `core.worktree`.
    pub(super) worktree: Option<String>,
    /// `extensions.worktreeConfig`: whether a worktree has a config of its own besides.
    pub(super) worktree_config: bool,
    /// `extensions.objectFormat`.
    pub(super) object_format: GitObjectFormat,
}

/// The hash that names objects.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum GitObjectFormat {
    #[default]
    Sha1,
    Sha256,
}

impl GitObjectFormat {
    /// Returns the length of an object name in bytes.
    pub(super) fn object_id_len(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }
}

impl GitRepositoryConfig {
    /// Parses a config file. Lines at which git would stop are skipped.
    pub(super) fn parse_git_config(text: &str) -> Self {
        let mut config = Self::default();
        let mut section = String::new();
        let mut lines = text.trim_start_matches('\u{feff}').lines();
        while let Some(line) = lines.next() {
            let mut rest = line.trim_start();
            if let Some(header) = rest.strip_prefix('[') {
                let Some((name, after)) = split_section_header_at_bracket(header) else {
                    continue;
                };
                // Section and key names are case-insensitive in git. A subsection keeps its quotes
                // here, so `core "x"` is not `core`.
                section = name.to_ascii_lowercase();
                // A setting may follow on the same line.
                rest = after.trim_start();
            }
            if rest.is_empty() || rest.starts_with(['#', ';']) {
                continue;
            }
            // A comment may follow a key without a value.
            let end = rest.find(['=', '#', ';']).unwrap_or(rest.len());
            let (key, after) = rest.split_at(end);
            let value = match after.strip_prefix('=') {
                Some(value) => unquote_git_config_value(value, &mut lines),
                // A key without `=` means true.
                None => "true".to_owned(),
            };
            match (&*section, &*key.trim_end().to_ascii_lowercase()) {
                // The last one of a key wins, as in git.
                ("core", "worktree") => config.worktree = Some(value),
                ("extensions", "worktreeconfig") => {
                    config.worktree_config = is_git_config_true(&value)
                }
                ("extensions", "objectformat") => {
                    config.object_format = match &*value.to_ascii_lowercase() {
                        "sha256" => GitObjectFormat::Sha256,
                        _ => GitObjectFormat::Sha1,
                    };
                }
                _ => {}
            }
        }
        config
    }
}

/// Returns whether a value means true. Git stops at a value that is neither true nor false; here it
/// means true, so that more is read.
fn is_git_config_true(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    !matches!(&*value, "" | "false" | "no" | "off") && value.parse() != Ok(0_i64)
}

/// Splits a section header after its `[` into the name and what follows the `]`. A `]` may occur in
/// the quoted part of a name.
fn split_section_header_at_bracket(header: &str) -> Option<(&str, &str)> {
    let mut quoted = false;
    let mut escaped = false;
    for (at, c) in header.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => {
                let (name, after) = header.split_at_checked(at)?;
                return Some((name, after.strip_prefix(']')?));
            }
            _ => {}
        }
    }
    None
}

/// Returns a value without quotes, escapes and comments. A backslash at the end of a line continues
/// it on the next.
fn unquote_git_config_value<'t>(
    first: &'t str,
    lines: &mut impl Iterator<Item = &'t str>,
) -> String {
    let mut value = String::new();
    // Length of the value without blanks at its end; quoted ones count.
    let mut kept = 0;
    let mut quoted = false;
    let mut line = first.trim_start();
    loop {
        let mut goes_on = false;
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            match c {
                '"' => quoted = !quoted,
                '#' | ';' if !quoted => break,
                '\\' => match chars.next() {
                    None => goes_on = true,
                    Some('n') => value.push('\n'),
                    Some('t') => value.push('\t'),
                    Some('b') => drop(value.pop()),
                    Some(other) => value.push(other),
                },
                _ => value.push(c),
            }
            if quoted || !c.is_whitespace() {
                kept = value.len();
            }
        }
        if !goes_on {
            break;
        }
        let Some(next) = lines.next() else { break };
        line = next;
    }
    value.truncate(kept);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_git_reads_them() {
        let check = |text: &str, worktree: Option<&str>, object_format| {
            let expected = GitRepositoryConfig {
                worktree: worktree.map(str::to_owned),
                worktree_config: false,
                object_format,
            };
            assert_eq!(
                GitRepositoryConfig::parse_git_config(text),
                expected,
                "{text:?}"
            );
        };
        use GitObjectFormat::{Sha1, Sha256};
        check("", None, Sha1);
        check("[core]\n\tworktree = ../x\n", Some("../x"), Sha1);
        check("[CORE] WorkTree=../x # there\n", Some("../x"), Sha1);
        check("[core]\nworktree = \"a # b \" ; c\n", Some("a # b "), Sha1);
        check("[core]\nworktree = a\\\n/b  \n", Some("a/b"), Sha1);
        check("[core]\nx = \\\nworktree = a\n", None, Sha1);
        check("[core]\nx # = y\nworktree = a\n", Some("a"), Sha1);
        check("[core \"x\"]\nworktree = a\n", None, Sha1);
        check("[a \"]\"]\nb = c\n[core]\nworktree = a\n", Some("a"), Sha1);
        check(
            "# [core]\n[extensions]\nobjectFormat = sha256\n",
            None,
            Sha256,
        );
        check(
            "[extensions]\nobjectformat = sha256\nobjectformat = sha1\n",
            None,
            Sha1,
        );
    }

    #[test]
    fn a_worktree_has_a_config_of_its_own_only_where_the_repository_says_so() {
        let check = |text: &str, expected| {
            let config = GitRepositoryConfig::parse_git_config(text);
            assert_eq!(config.worktree_config, expected, "{text:?}");
        };
        check("", false);
        for yes in [
            " = true", "=YES", " = on", " = 1", " = -2", "", " # alone", " = ?",
        ] {
            check(&format!("[extensions]\nworktreeConfig{yes}\n"), true);
        }
        for no in [" = false", "=No", " = off", " = 0", " =", " = \"\""] {
            check(&format!("[extensions]\nworktreeConfig{no}\n"), false);
        }
        check("[extensions \"x\"]\nworktreeConfig = true\n", false);
    }
}
