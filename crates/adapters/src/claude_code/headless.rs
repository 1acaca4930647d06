//! Claude Code without a person: `claude -p`, its hooks in a settings file of that run.

use serde_json::{Map, Value, json};

use super::stream::Stream;
use crate::Adapter as _;
use crate::headless::{Conversation, Headless, Launch, Launched, Output, Transcripts, Usage};

/// Seconds that a stop may take: the longest there is, since whoever runs it has a clock.
const STOP: u32 = 3600;
/// Seconds for any other event.
const OTHER: u32 = 60;

/// Arguments that take part in what `run` does, or switch hooks off.
const OURS: &[&str] = &[
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

impl Headless for super::ClaudeCode {
    fn program(&self) -> &'static str {
        "claude"
    }

    fn takes_id(&self) -> bool {
        true
    }

    fn launch(&self, launch: &Launch<'_>) -> Launched {
        let hooks: Map<String, Value> = self
            .events()
            .iter()
            .map(|event| ((*event).to_owned(), entry(launch, event)))
            .collect();
        let mut arguments: Vec<String> = [
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--settings",
            launch.settings,
        ]
        .map(str::to_owned)
        .into();
        match launch.conversation {
            Conversation::New(Some(id)) => arguments.extend(["--session-id".into(), id.into()]),
            Conversation::New(None) => {}
            Conversation::Resumed(id) => arguments.extend(["--resume".into(), id.into()]),
        }
        arguments.extend(launch.extra.iter().cloned());
        Launched {
            arguments,
            settings: Some(json!({ "hooks": hooks }).to_string().into_bytes()),
        }
    }

    fn in_the_way<'a>(&self, arguments: &'a [String]) -> Option<&'a str> {
        arguments
            .iter()
            .map(|argument| argument.split('=').next().unwrap_or(argument))
            .find(|flag| OURS.contains(flag))
    }

    fn reader(&self) -> Box<dyn Output + Send> {
        Box::new(Stream::default())
    }

    fn transcripts(&self) -> Option<Transcripts> {
        None
    }

    fn used_before(&self, _transcript: &[u8]) -> Option<Usage> {
        None
    }
}

fn entry(launch: &Launch<'_>, event: &str) -> Value {
    let timeout = if matches!(event, "Stop" | "SubagentStop") {
        STOP
    } else {
        OTHER
    };
    let mut arguments = vec!["hook".to_owned(), super::NAME.to_owned()];
    arguments.extend(launch.arguments.iter().cloned());
    arguments.extend(["--deadline".to_owned(), timeout.to_string()]);
    let mut handler = json!({
        "type": "command", "command": launch.hook, "args": arguments, "timeout": timeout,
    });
    // Only a tool request can be refused where the hook itself fails.
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
    use crate::claude_code::ClaudeCode;

    fn launched(conversation: Conversation<'_>) -> Launched {
        ClaudeCode.launch(&Launch {
            conversation,
            hook: "/opt/my tools/checkrein",
            arguments: &["--source".to_owned(), "run".to_owned()],
            settings: "/s/settings.json",
            extra: &["--model".to_owned(), "opus".to_owned()],
        })
    }

    #[test]
    fn hooks_are_in_a_file_of_the_run() {
        let launched = launched(Conversation::New(Some("u-u")));
        assert_eq!(
            launched.arguments.join(" "),
            "-p --output-format stream-json --verbose --settings /s/settings.json --session-id u-u --model opus"
        );
        let settings: Value = serde_json::from_slice(&launched.settings.unwrap()).unwrap();
        for event in ClaudeCode.events() {
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
        let arguments = launched(Conversation::Resumed("abc")).arguments.join(" ");
        assert!(arguments.contains("--resume abc"), "{arguments}");
        assert!(!arguments.contains("--session-id"), "{arguments}");
    }

    #[test]
    fn what_run_needs_for_itself_is_named() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(ClaudeCode.in_the_way(&words(text)), expected, "{text}");
        };
        check("--model opus --max-turns 4", None);
        check("--model opus --settings x.json", Some("--settings"));
        check("--settings=x.json", Some("--settings"));
        check("--bare", Some("--bare"));
    }
}
