//! Decides by its name whether an environment variable holds a secret.

/// Words in a variable's name that mark its value as secret.
const SECRET_WORDS: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "PRIVATE",
    "COOKIE",
    "SSHPASS",
];
/// Endings of names that mark the value as secret.
const SECRET_ENDS: &[&str] = &["_PASS", "_PWD", "_PSW", "_PAT"];
/// Endings of names whose value is a location and not the secret itself.
const PLACES: &[&str] = &["_FILE", "_PATH", "_DIR", "_SOCK", "_HOME", "_CONTROL"];

/// Returns whether a variable of the environment is secret. Every hook asks this about its whole
/// environment, so there is one pass over the name, and words are compared only where one may
/// begin.
pub(crate) fn is_secret_variable(name: &str) -> bool {
    let name = name.to_ascii_uppercase().into_bytes();
    // The letters below are the initials of `SECRET_WORDS`; a new word needs its own there.
    let begins = |at: usize| {
        let rest = name.get(at..).unwrap_or_default();
        matches!(rest.first(), Some(b'K' | b'T' | b'S' | b'P' | b'C'))
            && SECRET_WORDS
                .iter()
                .any(|word| rest.starts_with(word.as_bytes()))
    };
    let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end.as_bytes()));
    ((0..name.len()).any(begins) || ends(SECRET_ENDS)) && !ends(PLACES)
}

/// Parts between `_` of a variable's name that mark it as secret in a command that sets it. Only
/// whole parts count: `KEYBOARD` is no key.
const SECRET_PARTS: &[&str] = &[
    "KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASS",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "PAT",
    "PSW",
    "PW",
    "PWD",
    "SSHPASS",
    "PGPASSWORD",
];

/// Returns whether a command that sets this variable contains a secret.
pub(crate) fn is_secret_variable_name(name: &[u8]) -> bool {
    let name = name.to_ascii_uppercase();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let ends = |end: &&str| name.ends_with(end.as_bytes());
    let mut parts = name.split(|byte| *byte == b'_');
    // The shell's own variables, in which `PWD` means the working directory.
    let is_folder = matches!(&*name, b"PWD" | b"OLDPWD");
    name.iter().all(is_name)
        && !is_folder
        && !PLACES.iter().any(ends)
        && parts.any(|part| SECRET_PARTS.iter().any(|known| part == known.as_bytes()))
}

/// Returns whether a text may contain such a name.
pub(crate) fn mentions_secret_variable(text: &[u8]) -> bool {
    text.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
        .any(is_secret_variable_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_a_secret_name_is_found_where_it_stands() {
        for word in SECRET_WORDS {
            for name in [
                (*word).to_owned(),
                format!("MY_{word}"),
                word.to_lowercase() + "_1",
            ] {
                assert!(is_secret_variable(&name), "{name}");
            }
            assert!(!is_secret_variable(&format!("{word}_FILE")));
        }
        for name in ["MYSQL_PWD", "db_pass", "GITLAB_PAT"] {
            assert!(is_secret_variable(name), "{name}");
        }
        for name in ["PATH", "PWD", "OLDPWD", "BYPASS", "COMPASS_HOST"] {
            assert!(!is_secret_variable(name), "{name}");
        }
    }
}
