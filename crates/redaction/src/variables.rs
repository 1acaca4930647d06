//! Which variables of an environment hold secrets, by their names.

/// Words of a variable's name that say that its value is secret.
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
/// Ends of names that say the same.
const SECRET_ENDS: &[&str] = &["_PASS", "_PWD", "_PSW", "_PAT"];
/// Ends of names that say that the value is where something is, not what it is.
const PLACES: &[&str] = &["_FILE", "_PATH", "_DIR", "_SOCK", "_HOME", "_CONTROL"];

/// Every hook asks this of its whole environment: one pass over the name, and words are only
/// compared where one of them may begin.
pub(crate) fn is_secret_variable(name: &str) -> bool {
    let name = name.to_ascii_uppercase().into_bytes();
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

/// Parts of a variable's name, between `_`, of which one says the same where somebody sets it.
/// Only whole parts: `KEYBOARD` is no key.
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

/// Whether a command that sets this variable is given a secret.
pub(crate) fn is_secret_variable_name(name: &[u8]) -> bool {
    let name = name.to_ascii_uppercase();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let ends = |end: &&str| name.ends_with(end.as_bytes());
    let mut parts = name.split(|byte| *byte == b'_');
    // The shell's own.
    let is_folder = matches!(&*name, b"PWD" | b"OLDPWD");
    name.iter().all(is_name)
        && !is_folder
        && !PLACES.iter().any(ends)
        && parts.any(|part| SECRET_PARTS.iter().any(|known| part == known.as_bytes()))
}

/// Whether a text may hold such a name.
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
