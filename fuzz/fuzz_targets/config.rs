//! A `checkrein.toml`: compiled or refused; a compiled one survives its sealed form.
#![no_main]

use std::path::PathBuf;

use checkrein_core::policy::Policy;
use checkrein_runtime::config::{NamedConfigText, TaskDriverKind, compile_repo_and_personal_config};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // Its rules are files of this machine; the target `rules` has what is in them.
    if text.contains("rules") {
        return;
    }
    let source = NamedConfigText {
        name: PathBuf::from("checkrein.toml"),
        text: text.to_owned(),
    };
    if let Ok(compiled) = compile_repo_and_personal_config(Some(&source), None, TaskDriverKind::Hook) {
        let read = Policy::from_sealed_policy_blob(&compiled.policy.to_policy_blob())
            .expect("a sealed policy is readable");
        assert_eq!(read, compiled.policy);
        // One's own file may not loosen anything, whatever it says.
        let _ = compile_repo_and_personal_config(Some(&source), Some(&source), TaskDriverKind::Run);
    }
});
