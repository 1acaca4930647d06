//! An agent's message, by every adapter: an answer in its protocol, never a panic.
#![no_main]

use checkrein_adapters::{ALL, Reply, ReplyForm, Unreadable};
use checkrein_core::policy::Stance;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for adapter in ALL {
        let form = match adapter.read(bytes, &|_| Some("7".to_owned())) {
            Ok(knock) => knock.form,
            Err(Unreadable { form, .. }) => form,
        };
        let reply = adapter.stance(form, Stance::Block, "why");
        assert!(
            form == ReplyForm::Silent || reply != Reply::nothing(),
            "{} says nothing",
            adapter.name()
        );
    }
});
