//! A patch and a small tree: no panic, the same answer twice, no step outside of the root or
//! into git's folder, and a refusal that is bounded. The input is the tree's files and the
//! patch, parted by lines of `====`; a part that begins with `=> ` is a link.
#![no_main]

use checkrein_patch::{Fit, Memory, Within, check, parse, told};
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 4] = ["f", "src/a", "src/b.txt", "link"];

fuzz_target!(|text: &str| {
    let mut parts: Vec<&str> = text.split("====\n").collect();
    let patch = parts.pop().unwrap_or_default();
    let mut tree = Memory {
        folds_case: text.len() % 5 == 0,
        ..Memory::default()
    };
    for (name, part) in NAMES.iter().zip(parts) {
        let Some(path) = Within::read(name) else {
            continue;
        };
        match part.strip_prefix("=> ") {
            Some(target) => {
                tree.links.insert(path, target.trim_end().to_owned());
            }
            None => {
                tree.files.insert(path, part.as_bytes().to_vec());
            }
        }
    }
    let parsed = match parse(patch, None) {
        Ok(parsed) => parsed,
        Err(refusal) => {
            assert!(refusal.to_string().len() <= 2048);
            return;
        }
    };
    for fit in [Fit::Git, Fit::Gnu] {
        let answer = check(&parsed, &tree, &Within::root(), fit);
        assert_eq!(answer, check(&parsed, &tree, &Within::root(), fit));
        match answer {
            Err(refusals) => assert!(!refusals.is_empty() && told(&refusals).len() <= 2048),
            Ok(plan) => {
                for step in plan.steps {
                    let path = step.path.to_string();
                    assert_eq!(Within::read(&path).as_ref(), Some(&step.path));
                    assert!(!path.is_empty() && !step.path.is_in_git());
                }
            }
        }
    }
});
