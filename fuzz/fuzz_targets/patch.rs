//! A patch and a small tree: no panic, the same answer twice, no step outside of the root or
//! into git's folder, and a refusal that is bounded. The input is the tree's files and the
//! patch, parted by lines of `====`; a part that begins with `=> ` is a link.
#![no_main]

use checkrein_patch::{
    HunkMatchDialect, InMemoryFileTree, PathBelowRoot, plan_patch_against_tree, parse_patch,
    render_patch_refusals,
};
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 4] = ["f", "src/a", "src/b.txt", "link"];

fuzz_target!(|text: &str| {
    let mut parts: Vec<&str> = text.split("====\n").collect();
    let patch = parts.pop().unwrap_or_default();
    let mut tree = InMemoryFileTree {
        is_case_insensitive: text.len() % 5 == 0,
        ..InMemoryFileTree::default()
    };
    for (name, part) in NAMES.iter().zip(parts) {
        let Some(path) = PathBelowRoot::parse_path_inside_tree(name) else {
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
    let parsed = match parse_patch(patch, None) {
        Ok(parsed) => parsed,
        Err(refusal) => {
            assert!(refusal.to_string().len() <= 2048);
            return;
        }
    };
    for fit in [HunkMatchDialect::Git, HunkMatchDialect::Gnu] {
        let answer =
            plan_patch_against_tree(&parsed, &tree, &PathBelowRoot::tree_root_path(), fit);
        assert_eq!(
            answer,
            plan_patch_against_tree(&parsed, &tree, &PathBelowRoot::tree_root_path(), fit)
        );
        match answer {
            Err(refusals) => {
                assert!(!refusals.is_empty() && render_patch_refusals(&refusals).len() <= 2048)
            }
            Ok(plan) => {
                for step in plan.steps {
                    let path = step.path.to_string();
                    assert_eq!(
                        PathBelowRoot::parse_path_inside_tree(&path).as_ref(),
                        Some(&step.path)
                    );
                    assert!(!path.is_empty() && !step.path.has_dot_git_component());
                }
            }
        }
    }
});
