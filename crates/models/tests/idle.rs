//! A process that asks no model starts nothing. In a program of its own, where no other test
//! starts anything.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    reason = "what a test needs to be there may fail as loudly as the test"
)]

use std::collections::BTreeMap;

use checkrein_models::{
    ModelError, ModelRequestLimits, PriceList, RemoteModel, block_on, validate_model_name,
};

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn only_a_question_starts_an_executor() {
    let before = threads();
    let environment = BTreeMap::from([("OPENAI_API_KEY".into(), "k-1".into())]);
    let model =
        RemoteModel::new("openai/gpt-5", &environment, ModelRequestLimits::default()).unwrap();
    validate_model_name("anthropic/claude-opus-5").unwrap();
    assert!(
        PriceList::default()
            .model_price("openai/gpt-5", 0)
            .is_some()
    );
    drop(model);
    assert_eq!(threads(), before);
    block_on(async { Ok::<_, ModelError>(()) }).unwrap();
    assert!(threads() > before);
}
