//! Filters the environment of a check. Withheld are keys of model providers, which code that an
//! agent has just written must not see, and the marks of an agent's session, under which tools
//! behave differently than for a person or in CI.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Keys of model providers. `env = ["NAME"]` of a verifier lets one through.
pub const PROVIDER_KEYS: &[&str] = &[
    "AMP_API_KEY",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AZURE_OPENAI_API_KEY",
    "CEREBRAS_API_KEY",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CODEX_API_KEY",
    "COHERE_API_KEY",
    "COPILOT_GITHUB_TOKEN",
    "CURSOR_API_KEY",
    "DASHSCOPE_API_KEY",
    "DEEPSEEK_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_GENERATIVE_AI_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "PERPLEXITY_API_KEY",
    "TOGETHER_API_KEY",
    "XAI_API_KEY",
    "ZAI_API_KEY",
];

/// Marks of an agent's session.
pub const AGENT_MARKS: &[&str] = &[
    "AI_AGENT",
    "CLAUDECODE",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PROJECT_DIR",
    "CODEX_CI",
    "CODEX_THREAD_ID",
    "CURSOR_AGENT",
    "CURSOR_TRACE_ID",
    "GEMINI_CLI",
    "OPENCODE",
];

/// Prefixes of more such marks, and of Checkrein's own variables.
pub const PREFIXES: &[&str] = &["CHECKREIN_", "CLAUDE_CODE_", "CODEX_SANDBOX"];

/// The only variable of Checkrein's that a check sees: a nonce by which its processes are
/// recognised.
pub const CHECK_VARIABLE: &str = "CHECKREIN_CHECK";

/// Returns whether a check does not get this variable unless its `env` names it.
pub fn is_withheld_variable(name: &str) -> bool {
    // The lists are sorted, which a test checks.
    PROVIDER_KEYS.binary_search(&name).is_ok()
        || AGENT_MARKS.binary_search(&name).is_ok()
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the environment for a check and the sorted names withheld from it.
pub(crate) fn filter_environment(
    env: &BTreeMap<OsString, OsString>,
    let_through: &[String],
) -> (Vec<(OsString, OsString)>, Vec<String>) {
    let mut given = Vec::with_capacity(env.len());
    let mut withheld = Vec::new();
    for (name, value) in env {
        // A name that is not UTF-8 is on no list and is passed on.
        match name.to_str().filter(|name| is_withheld_variable(name)) {
            Some(text)
                if !let_through
                    .iter()
                    .any(|through| OsStr::new(through) == name) =>
            {
                withheld.push(text.to_owned());
            }
            _ => given.push((name.clone(), value.clone())),
        }
    }
    (given, withheld)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_and_without_doubles() {
        assert!(PROVIDER_KEYS.is_sorted_by(|a, b| a < b));
        assert!(AGENT_MARKS.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn keys_and_marks_go_and_all_else_stays() {
        let env: BTreeMap<OsString, OsString> = [
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDECODE",
            "CLAUDE_CODE_ENTRYPOINT",
            "CODEX_SANDBOX_NETWORK_DISABLED",
            "CHECKREIN_STATE",
            "CODEX_HOME",
            "CI",
            "PATH",
            "ANTHROPIC_BASE_URL",
            "MY_OPENAI_API_KEY",
        ]
        .into_iter()
        .map(|name| (name.into(), "v".into()))
        .collect();
        let (given, withheld) =
            filter_environment(&env, &["OPENAI_API_KEY".to_owned(), "CI".to_owned()]);
        let given: Vec<_> = given
            .iter()
            .map(|(name, _)| name.to_str().unwrap())
            .collect();
        assert_eq!(
            given,
            [
                "ANTHROPIC_BASE_URL",
                "CI",
                "CODEX_HOME",
                "MY_OPENAI_API_KEY",
                "OPENAI_API_KEY",
                "PATH"
            ]
        );
        assert_eq!(
            withheld,
            [
                "ANTHROPIC_API_KEY",
                "CHECKREIN_STATE",
                "CLAUDECODE",
                "CLAUDE_CODE_ENTRYPOINT",
                "CLAUDE_CODE_OAUTH_TOKEN",
                "CODEX_SANDBOX_NETWORK_DISABLED",
            ]
        );
    }
}
