//! Starts Claude Code without a person: `claude -p`, with its hooks in a settings file of that run.

use serde_json::{Map, Value, json};

use super::stream::ClaudeOutputReader;
use crate::Adapter as _;
use crate::headless::{
    AgentArgumentsAndSettings, AgentLaunchRequest, AgentOutputReader, AgentTokensAndCost,
    HeadlessAgent, LaunchConversation, TranscriptFolder,
};

/// Seconds that a stop may take. This is the longest timeout there is, since `run` has a clock of
/// its own.
const STOP_TIMEOUT: u32 = 3600;
/// Seconds for any other event.
const OTHER_TIMEOUT: u32 = 60;

/// Arguments that `run` sets itself, or that switch hooks off.
const RESERVED_ARGUMENTS: &[&str] = &[
    "-p",
    "--print",
    "--output-format",
    "--input-format",
    "--settings",
    "--session-id",
    "-r",
    "--resume",
    "-c",
    "--continue",
    "--fork-session",
    "--no-session-persistence",
    "--bare",
    "--safe-mode",
];

impl HeadlessAgent for super::ClaudeCodeAdapter {
    fn agent_program_name(&self) -> &'static str {
        "claude"
    }

    fn agent_accepts_our_session_id(&self) -> bool {
        true
    }

    fn launch_plan(&self, launch: &AgentLaunchRequest<'_>) -> AgentArgumentsAndSettings {
        let hooks: Map<String, Value> = self
            .hook_events()
            .iter()
            .map(|event| ((*event).to_owned(), hook_entry_json(launch, event)))
            .collect();
        let mut arguments: Vec<String> = [
            "-p",
            "--output-format",
            "stream-json",
            // The format `stream-json` is refused without `--verbose`.
            "--verbose",
            "--settings",
            launch.settings,
        ]
        .map(str::to_owned)
        .into();
        match launch.conversation {
            LaunchConversation::New(Some(id)) => {
                arguments.extend(["--session-id".into(), id.into()])
            }
            LaunchConversation::New(None) => {}
            LaunchConversation::Resumed(id) => arguments.extend(["--resume".into(), id.into()]),
        }
        arguments.extend(launch.extra.iter().cloned());
        AgentArgumentsAndSettings {
            arguments,
            settings: Some(json!({ "hooks": hooks }).to_string().into_bytes()),
        }
    }

    fn argument_conflicting_with_run<'a>(&self, arguments: &'a [String]) -> Option<&'a str> {
        arguments
            .iter()
            // A flag may carry its value behind `=`.
            .map(|argument| argument.split('=').next().unwrap_or(argument))
            .find(|flag| RESERVED_ARGUMENTS.contains(flag))
    }

    fn agent_output_reader(&self) -> Box<dyn AgentOutputReader + Send> {
        Box::new(ClaudeOutputReader::default())
    }

    fn agent_transcripts_folder(&self) -> Option<TranscriptFolder> {
        None
    }

    fn prior_conversation_usage(&self, _transcript: &[u8]) -> Option<AgentTokensAndCost> {
        None
    }
}

fn hook_entry_json(launch: &AgentLaunchRequest<'_>, event: &str) -> Value {
    let timeout = if matches!(event, "Stop" | "SubagentStop") {
        STOP_TIMEOUT
    } else {
        OTHER_TIMEOUT
    };
    let mut arguments = vec!["hook".to_owned(), super::NAME.to_owned()];
    arguments.extend(launch.arguments.iter().cloned());
    arguments.extend(["--deadline".to_owned(), timeout.to_string()]);
    let mut handler = json!({
        "type": "command", "command": launch.hook, "args": arguments, "timeout": timeout,
    });
    // Only a tool request can be refused where the hook itself fails; at stops Claude Code ignores
    // the key.
    if event == "PreToolUse"
        && let Some(fields) = handler.as_object_mut()
    {
        fields.insert("onFailure".to_owned(), "block".into());
    }
    json!([{ "hooks": [handler] }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude_code::ClaudeCodeAdapter;

    fn launched(conversation: LaunchConversation<'_>) -> AgentArgumentsAndSettings {
        ClaudeCodeAdapter.launch_plan(&AgentLaunchRequest {
            conversation,
            hook: "/opt/my tools/checkrein",
            arguments: &["--source".to_owned(), "run".to_owned()],
            settings: "/s/settings.json",
            extra: &["--model".to_owned(), "opus".to_owned()],
        })
    }

    #[test]
    fn hooks_are_in_a_file_of_the_run() {
        let launched = launched(LaunchConversation::New(Some("u-u")));
        assert_eq!(
            launched.arguments.join(" "),
            "-p --output-format stream-json --verbose --settings /s/settings.json --session-id u-u --model opus"
        );
        let settings: Value = serde_json::from_slice(&launched.settings.unwrap()).unwrap();
        for event in ClaudeCodeAdapter.hook_events() {
            let handler = &settings["hooks"][event][0]["hooks"][0];
            assert_eq!(handler["command"], "/opt/my tools/checkrein", "{event}");
            assert_eq!(handler["args"][0], "hook");
            assert_eq!(handler["args"][3], "run");
            assert_eq!(
                handler["onFailure"] == "block",
                *event == "PreToolUse",
                "{event}"
            );
        }
        assert_eq!(settings["hooks"]["Stop"][0]["hooks"][0]["timeout"], 3600);
    }

    #[test]
    fn a_conversation_is_taken_up_by_its_id() {
        let arguments = launched(LaunchConversation::Resumed("abc"))
            .arguments
            .join(" ");
        assert!(arguments.contains("--resume abc"), "{arguments}");
        assert!(!arguments.contains("--session-id"), "{arguments}");
    }

    #[test]
    fn what_run_needs_for_itself_is_named() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(
                ClaudeCodeAdapter.argument_conflicting_with_run(&words(text)),
                expected,
                "{text}"
            );
        };
        check("--model opus --max-turns 4", None);
        check("--model opus --settings x.json", Some("--settings"));
        check("--settings=x.json", Some("--settings"));
        check("--bare", Some("--bare"));
    }
}
