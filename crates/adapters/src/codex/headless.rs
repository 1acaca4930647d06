//! Starts Codex without a person: `codex exec`, with its hooks and the trust in them on the command
//! line. Codex runs a hook only if the digest of its definition is trusted; a digest given with
//! `-c` counts for hooks given with `-c`, so no file of the person's has to be touched.

use serde_json::Value;

use super::stream::{CodexOutputReader, token_usage_from_codex_rollout};
use super::trust;
use crate::Adapter as _;
use crate::headless::{
    AgentArgumentsAndSettings, AgentLaunchRequest, AgentOutputReader, AgentTokensAndCost,
    HeadlessAgent, LaunchConversation, TranscriptFolder,
};
use crate::settings::{HookHandler, HookHandlerInvocation};

/// Seconds that a stop may take. This is the longest timeout there is, since `run` has a clock of
/// its own.
const STOP_TIMEOUT: u32 = 3600;
/// Seconds for any other event.
const OTHER_TIMEOUT: u32 = 60;
/// Seconds for SessionEnd, for which Codex allows no more.
const SESSION_END_TIMEOUT: u32 = 3;

/// The path under which Codex keeps trust in hooks of the command line.
const FLAGS_FILE: &str = "/<session-flags>/config.toml";

/// Arguments that `run` sets itself, or that switch hooks off.
const RESERVED_ARGUMENTS: &[&str] = &[
    "exec",
    "resume",
    "fork",
    "review",
    "--json",
    "--ephemeral",
    "--dangerously-bypass-hook-trust",
];

impl HeadlessAgent for super::CodexAdapter {
    fn agent_program_name(&self) -> &'static str {
        "codex"
    }

    fn agent_accepts_our_session_id(&self) -> bool {
        false
    }

    fn launch_plan(&self, launch: &AgentLaunchRequest<'_>) -> AgentArgumentsAndSettings {
        let mut arguments = vec!["exec".to_owned(), "--json".to_owned()];
        let mut trusted = Vec::new();
        // Each event gets one hook, at group 0 and handler 0 of its list: the trust keys say so
        // too.
        for event in self.hook_events() {
            let timeout = codex_hook_event_timeout(event);
            let command = hook_command(launch, timeout);
            arguments.push("-c".to_owned());
            arguments.push(format!(
                "hooks.{event}=[{{hooks=[{{type=\"command\",command={},timeout={timeout}}}]}}]",
                toml_string(&command),
            ));
            let hook = codex_command_hook_handler(event, command, timeout);
            let review = trust::codex_hook_trust_key(FLAGS_FILE, &hook)
                .zip(trust::codex_hook_trust_hash(&hook));
            // The key holds `/` and `:`, so it is quoted.
            trusted.extend(review.map(|(key, hash)| {
                format!(
                    "{}={{trusted_hash={}}}",
                    toml_string(&key),
                    toml_string(&hash)
                )
            }));
        }
        arguments.push("-c".to_owned());
        arguments.push(format!("hooks.state={{{}}}", trusted.join(",")));
        arguments.extend(launch.extra.iter().cloned());
        // `resume` is a subcommand of `exec`, so the options of `exec` stand before it.
        if let LaunchConversation::Resumed(id) = launch.conversation {
            arguments.extend(["resume".to_owned(), id.to_owned()]);
        }
        // The prompt comes on stdin.
        arguments.push("-".to_owned());
        AgentArgumentsAndSettings {
            arguments,
            settings: None,
        }
    }

    fn argument_conflicting_with_run<'a>(&self, arguments: &'a [String]) -> Option<&'a str> {
        // A person's own `-c hooks...` would replace ours, and with it the gate of the run.
        let switches_hooks = |pair: &[String]| match pair {
            [flag, value] => match flag.as_str() {
                "-c" | "--config" => {
                    let key = value.split('=').next().unwrap_or_default().trim();
                    key == "hooks" || key.starts_with("hooks.") || key.starts_with("features.hooks")
                }
                "--disable" | "--enable" => matches!(value.as_str(), "hooks" | "codex_hooks"),
                _ => false,
            },
            _ => false,
        };
        arguments
            .iter()
            .map(|argument| argument.split('=').next().unwrap_or(argument))
            .find(|flag| RESERVED_ARGUMENTS.contains(flag))
            .or_else(|| {
                arguments
                    .windows(2)
                    .find(|pair| switches_hooks(pair))
                    .and_then(|pair| pair.last())
                    .map(String::as_str)
            })
    }

    fn agent_output_reader(&self) -> Box<dyn AgentOutputReader + Send> {
        Box::new(CodexOutputReader::default())
    }

    fn agent_transcripts_folder(&self) -> Option<TranscriptFolder> {
        Some(TranscriptFolder {
            home_variable: "CODEX_HOME",
            default_home: ".codex",
            subfolder: "sessions",
        })
    }

    fn prior_conversation_usage(&self, transcript: &[u8]) -> Option<AgentTokensAndCost> {
        token_usage_from_codex_rollout(transcript)
    }
}

fn codex_hook_event_timeout(event: &str) -> u32 {
    match event {
        "Stop" | "SubagentStop" => STOP_TIMEOUT,
        "SessionEnd" => SESSION_END_TIMEOUT,
        _ => OTHER_TIMEOUT,
    }
}

/// Returns a line for the shell by which Codex starts its hooks.
fn hook_command(launch: &AgentLaunchRequest<'_>, timeout: u32) -> String {
    let mut words = vec![launch.hook, "hook", super::NAME];
    words.extend(launch.arguments.iter().map(String::as_str));
    let timeout = timeout.to_string();
    words.extend(["--deadline", &timeout]);
    words
        .into_iter()
        .map(quote_shell_word)
        .collect::<Vec<_>>()
        .join(" ")
}

fn quote_shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/' | '.' | ':');
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Returns a TOML string. A JSON string is one, except for the one character that TOML wants
/// escaped.
fn toml_string(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// Returns the handler as Codex reads it from the command line. Its digest has to come out the
/// same.
fn codex_command_hook_handler(event: &str, command: String, timeout: u32) -> HookHandler {
    HookHandler {
        event: event.to_owned(),
        group: 0,
        handler: 0,
        matcher: None,
        call: HookHandlerInvocation::Command {
            command,
            args: None,
        },
        timeout: timeout.into(),
        blocks_on_failure: false,
        detached: false,
        status: None,
        context_limit: None,
        fires: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codex::CodexAdapter;

    fn launched(conversation: LaunchConversation<'_>) -> Vec<String> {
        let launched = CodexAdapter.launch_plan(&AgentLaunchRequest {
            conversation,
            hook: "/opt/it's here/checkrein",
            arguments: &["--source".to_owned(), "run".to_owned()],
            settings: "/s/settings.json",
            extra: &["-s".to_owned(), "workspace-write".to_owned()],
        });
        assert_eq!(launched.settings, None);
        launched.arguments
    }

    #[test]
    fn hooks_and_their_trust_are_on_the_command_line() {
        let arguments = launched(LaunchConversation::New(None));
        let stop = "hooks.Stop=[{hooks=[{type=\"command\",command=\"'/opt/it'\\\\''s here/checkrein' hook codex --source run --deadline 3600\",timeout=3600}]}]";
        assert!(arguments.iter().any(|word| word == stop), "{arguments:?}");
        let state = arguments
            .iter()
            .find(|word| word.starts_with("hooks.state="))
            .unwrap();
        for event in CodexAdapter.hook_events() {
            let key = trust::codex_hook_trust_key(
                FLAGS_FILE,
                &codex_command_hook_handler(event, String::new(), 1),
            )
            .unwrap();
            assert!(state.contains(&key), "{key}");
        }
        let ours = arguments.iter().any(|word| word.contains("bypass"));
        assert!(!ours, "{arguments:?}");
        assert_eq!(
            arguments[arguments.len() - 3..],
            ["-s", "workspace-write", "-"]
        );
    }

    #[test]
    fn a_conversation_is_taken_up_by_its_id() {
        let arguments = launched(LaunchConversation::Resumed("abc"));
        assert_eq!(arguments[arguments.len() - 3..], ["resume", "abc", "-"]);
    }

    #[test]
    fn the_digest_is_the_one_that_codex_takes() {
        // `currentHash` of `hooks/list` of 0.169.0 for this handler.
        assert_eq!(
            trust::codex_hook_trust_hash(&codex_command_hook_handler(
                "Stop",
                "checkrein hook codex".to_owned(),
                60
            ))
            .unwrap(),
            "sha256:544a418a4eaa8dd782933ca12e6268b89f466fe721c64c107b4d118870730886"
        );
    }

    #[test]
    fn what_run_needs_for_itself_is_named() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(
                CodexAdapter.argument_conflicting_with_run(&words(text)),
                expected,
                "{text}"
            );
        };
        check("-m gpt-5.5 -s workspace-write -c model=x", None);
        check("-s read-only --json", Some("--json"));
        check("-c hooks.Stop=[]", Some("hooks.Stop=[]"));
        check("--disable hooks", Some("hooks"));
    }
}
