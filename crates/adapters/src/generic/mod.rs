//! Our own protocol, for agents without one that we know: one line of the trace format plus
//! `session` on stdin, one JSON object on stdout. [`trace`] reads whole files of it.

mod read;
mod render;
pub mod trace;

use checkrein_core::input::TokenUsage;
use checkrein_core::policy::Stance;

use crate::capabilities::{Capabilities, Deadlines};
use crate::knock::{Knock, ReplyForm, Unreadable};
use crate::reply::{Answer, Reply};
use crate::wording::or_cannot_judge;
use crate::{Adapter, Env};

const NAME: &str = "generic";

/// The adapter.
#[derive(Debug)]
pub(crate) struct Generic;

impl Adapter for Generic {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        // Whoever speaks this protocol obeys it; what a person can be asked is not known.
        Capabilities {
            block_stop: true,
            deny_tool: true,
            ask_person: true,
            add_context: true,
            halt: true,
            system_message: true,
            block_cap: None,
            own_session_ids: false,
            rounds: true,
            subagents: false,
            // Some only ask.
            tool_requests: false,
            tool_outcomes: false,
            tool_errors: true,
            transcript_usage: false,
            deadlines: Deadlines {
                stop: 600,
                tool: 60,
                prompt: 60,
                session_end: 60,
                other: 60,
            },
        }
    }

    fn events(&self) -> &'static [&'static str] {
        &[
            "assistant",
            "end",
            "session",
            "stop",
            "tool_call",
            "tool_result",
            "user",
        ]
    }

    fn read(&self, bytes: &[u8], _env: Env<'_>) -> Result<Knock, Unreadable> {
        read::read(bytes)
    }

    fn reply(&self, form: ReplyForm, answer: &Answer) -> Reply {
        render::reply(form, answer)
    }

    fn stance(&self, form: ReplyForm, stance: Stance, text: &str) -> Reply {
        render::stance(form, stance, or_cannot_judge(text))
    }

    /// Token use comes with the messages themselves.
    fn usage(&self, _bytes: &[u8], _cursor: &str) -> Option<TokenUsage> {
        None
    }
}
