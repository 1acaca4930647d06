//! The settings of a repository's config that say how its index is read. Git takes them from
//! this one file, without the files that it includes.

/// What a config file says of the repository.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GitRepositoryConfig {
    /// `core.worktree`.
    pub(super) worktree: Option<String>,
    /// `extensions.worktreeConfig`: a worktree has settings of its own, too.
    pub(super) worktree_config: bool,
    /// `extensions.objectFormat`.
    pub(super) object_format: GitObjectFormat,
}

/// How objects are named.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum GitObjectFormat {
    #[default]
    Sha1,
    Sha256,
}

impl GitObjectFormat {
    /// Bytes of a name.
    pub(super) fn object_id_len(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }
}

impl GitRepositoryConfig {
    /// What git would stop at is skipped.
    pub(super) fn parse_git_config(text: &str) -> Self {
        let mut config = Self::default();
        let mut section = String::new();
        let mut lines = text.trim_start_matches('\u{feff}').lines();
        while let Some(line) = lines.next() {
            let mut rest = line.trim_start();
            if let Some(header) = rest.strip_prefix('[') {
                let Some((name, after)) = split_git_config_section_name(header) else {
                    continue;
                };
                section = name.to_ascii_lowercase();
                // A setting may follow on the same line.
                rest = after.trim_start();
            }
            if rest.is_empty() || rest.starts_with(['#', ';']) {
                continue;
            }
            let end = rest.find(['=', '#', ';']).unwrap_or(rest.len());
            let (key, after) = rest.split_at(end);
            let value = match after.strip_prefix('=') {
                Some(value) => unquote_git_config_value(value, &mut lines),
                // A name alone is a yes.
                None => "true".to_owned(),
            };
            match (&*section, &*key.trim_end().to_ascii_lowercase()) {
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

/// Git stops at what is neither a yes nor a no. Here it is a yes: more is read then.
fn is_git_config_true(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    !matches!(&*value, "" | "false" | "no" | "off") && value.parse() != Ok(0_i64)
}

/// The name of a section without `[`, and what follows its `]`. A `]` may stand in the quoted
/// part of a name.
fn split_git_config_section_name(header: &str) -> Option<(&str, &str)> {
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

/// A value without quotes, escapes and comments; it goes on where its line ends in a backslash.
fn unquote_git_config_value<'t>(
    first: &'t str,
    lines: &mut impl Iterator<Item = &'t str>,
) -> String {
    let mut value = String::new();
    // Blanks at the end do not count, unless they are quoted.
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
