//! Parses the definition of a `command` verifier and decides whether it needs a shell. Without one
//! a missing program is recognised as such, and there is one process less between Checkrein and the
//! check.

use serde::Deserialize;

use crate::VerifierDefinitionError;

/// `{"run": "cargo test", "env": ["CI"]}`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommandVerifierDefinition {
    /// The command line.
    pub(crate) run: String,
    /// Variables that are passed although they are withheld by default.
    #[serde(default)]
    pub(crate) env: Vec<String>,
}

/// How to start the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DirectOrShellCommand<'a> {
    /// A program and its arguments, started directly.
    Direct(&'a str, Vec<&'a str>),
    /// A text that the platform's shell interprets.
    Shell(&'a str),
}

/// Characters that mean something to a shell, or that are left to it.
pub(super) const SHELL_SYNTAX: &[char] = &[
    '|', '&', ';', '<', '>', '(', ')', '$', '`', '\\', '"', '\'', '*', '?', '[', ']', '#', '~',
    '=', '{', '}', '!', '\n', '\r',
];

/// First words that only a shell understands, or understands differently.
const SHELL_WORDS: &[&str] = &[
    ".", ":", "alias", "break", "case", "cd", "command", "continue", "eval", "exec", "exit",
    "export", "for", "function", "hash", "if", "local", "read", "readonly", "return", "set",
    "shift", "source", "time", "times", "trap", "type", "ulimit", "umask", "unalias", "unset",
    "until", "wait", "while",
];

impl CommandVerifierDefinition {
    pub(crate) fn parse_definition(text: &str) -> Result<Self, VerifierDefinitionError> {
        let definition: Self =
            serde_json::from_str(text).map_err(|source| VerifierDefinitionError::Shape {
                kind: "command",
                source,
            })?;
        // An empty command succeeds in a shell, so it would pass for ever.
        if definition.run.trim().is_empty() {
            return Err(VerifierDefinitionError::Empty { key: "run" });
        }
        // Such names cannot be in an environment: `=` ends the name, and a NUL the entry.
        let bad = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
        match definition.env.iter().find(bad) {
            Some(name) => Err(VerifierDefinitionError::VariableName { name: name.clone() }),
            None => Ok(definition),
        }
    }

    pub(crate) fn direct_or_shell_invocation(&self) -> DirectOrShellCommand<'_> {
        let text = self.run.trim();
        let mut words = text.split_whitespace();
        match words.next() {
            // On Windows most programs that people name are scripts (`npm.cmd`), which only `cmd`
            // finds.
            Some(program)
                if !cfg!(windows)
                    && !text.contains(SHELL_SYNTAX)
                    && !SHELL_WORDS.contains(&program) =>
            {
                DirectOrShellCommand::Direct(program, words.collect())
            }
            _ => DirectOrShellCommand::Shell(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_shell_only_where_one_is_needed() {
        let check = |run: &str, expected: DirectOrShellCommand<'_>| {
            let definition = CommandVerifierDefinition {
                run: run.to_owned(),
                env: vec![],
            };
            assert_eq!(definition.direct_or_shell_invocation(), expected, "{run}");
        };
        check(
            " cargo test  --all ",
            DirectOrShellCommand::Direct("cargo", vec!["test", "--all"]),
        );
        check(
            "./a.sh b/c.d -x:1 +2 @3,",
            DirectOrShellCommand::Direct("./a.sh", vec!["b/c.d", "-x:1", "+2", "@3,"]),
        );
        check(
            "npm run test:unit",
            DirectOrShellCommand::Direct("npm", vec!["run", "test:unit"]),
        );
        for shell in [
            "a && b", "a | b", "A=1 b", "echo $X", "ls *.c", "exit 3", "cd x", "a 'b c'", "a\nb",
            "! a",
        ] {
            check(shell, DirectOrShellCommand::Shell(shell));
        }
    }

    #[test]
    fn bad_definitions_say_what_is_wrong() {
        let message = |text: &str| {
            CommandVerifierDefinition::parse_definition(text)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(message(r#"{"run": "  "}"#), "'run' is empty");
        assert_eq!(
            message(r#"{"cmd": "x"}"#),
            "not a definition of a 'command' verifier"
        );
        assert_eq!(
            message(r#"{"run": "x", "env": ["A=B"]}"#),
            "'A=B' cannot be the name of an environment variable"
        );
        assert_eq!(
            CommandVerifierDefinition::parse_definition(r#"{"run": "x", "env": ["A"]}"#).unwrap(),
            CommandVerifierDefinition {
                run: "x".to_owned(),
                env: vec!["A".to_owned()]
            }
        );
    }
}
