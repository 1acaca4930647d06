//! An agent's message, by every adapter: an answer in its protocol, never a panic.
#![no_main]

use checkrein_adapters::{ALL, AgentMessageParseError, AwaitedHookReplyForm, HookReply};
use checkrein_core::policy::Stance;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for adapter in ALL {
        let form = match adapter.parse_agent_hook_message(bytes, &|_| Some("7".to_owned())) {
            Ok(knock) => knock.reply_form,
            Err(AgentMessageParseError { reply_form, .. }) => reply_form,
        };
        let reply = adapter.stance_as_hook_reply(form, Stance::Block, "why");
        assert!(
            form == AwaitedHookReplyForm::Silent || reply != HookReply::no_opinion_hook_reply(),
            "{} says nothing",
            adapter.agent_name()
        );
    }
});
