//! `parity patch`: runs generated patches on generated trees through Codex's `apply_patch` and
//! through ours, and compares the trees afterwards byte for byte. A difference is put down to a
//! known reason only if both trees bear it out; all others are printed in full.

mod cases;
mod random;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use cases::PatchParityCase;
use checkrein_patch::{
    DiskTree, HunkMatchDialect, PatchPlan, PatchRefusal, PatchRefusalCause, PathBelowRoot,
    apply_patch_plan, parse_patch, plan_patch_against_tree, render_patch_refusals,
};

/// Contents of a tree: files with their bytes, folders (`NAME/`), and links (`NAME@`) with their
/// targets.
type TreeBytesByPath = BTreeMap<String, Vec<u8>>;

struct PatchParityOptions {
    cases: u64,
    seed: u64,
    show: bool,
}

/// Runs the comparison.
pub(super) fn run_patch_parity(arguments: &[String]) -> Result<ExitCode, String> {
    let options = parse_parity_options(arguments)?;
    let codex = std::env::var_os("CODEX_BIN")
        .map(PathBuf::from)
        .ok_or("CODEX_BIN must name the codex program")?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    // Codex acts as `apply_patch` when it is started under that name.
    let tool = folder.path().join("apply_patch");
    create_symlink(&codex, &tool)?;
    println!(
        "apply_patch of {}; {} cases from seed {}",
        codex_version(&codex),
        options.cases,
        options.seed
    );
    let mut counts: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut unexplained = 0;
    for number in 0..options.cases {
        // Different `--seed`s share no case, up to a million cases each.
        let seed = options.seed.wrapping_mul(1_000_003).wrapping_add(number);
        let place = folder.path().join(number.to_string());
        let answer =
            compare_patch_parity_case(&cases::generate_patch_parity_case(seed), &place, &tool)?;
        *counts.entry(answer.category).or_default() += 1;
        if answer.category == UNEXPLAINED || (options.show && answer.differs) {
            println!("--- case {seed}: {}\n{}", answer.category, answer.story);
        }
        unexplained += u64::from(answer.category == UNEXPLAINED);
        fs::remove_dir_all(&place).map_err(|error| error.to_string())?;
    }
    for (what, count) in &counts {
        println!("{count:>6}  {what}");
    }
    println!("{unexplained} unexplained of {}", options.cases);
    Ok(match unexplained {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(1),
    })
}

fn parse_parity_options(arguments: &[String]) -> Result<PatchParityOptions, String> {
    let mut options = PatchParityOptions {
        cases: 3000,
        seed: 1,
        show: false,
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut number = || {
            let number = words.next().and_then(|text| text.parse().ok());
            number.ok_or(format!("{word} takes a number"))
        };
        match word.as_str() {
            "--cases" => options.cases = number()?,
            "--seed" => options.seed = number()?,
            "--show" => options.show = true,
            _ => return Err(super::USAGE.to_owned()),
        }
    }
    Ok(options)
}

fn codex_version(codex: &Path) -> String {
    let output = Command::new(codex).arg("--version").output();
    output.map_or_else(
        |error| error.to_string(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

#[cfg(unix)]
fn create_symlink(target: &Path, link: &Path) -> Result<(), String> {
    std::os::unix::fs::symlink(target, link).map_err(|error| error.to_string())
}

#[cfg(not(unix))]
fn create_symlink(_target: &Path, _link: &Path) -> Result<(), String> {
    Err("this comparison needs symbolic links".to_owned())
}

const SAME: &str = "same tree";
const BOTH_REFUSE: &str = "both refuse, nothing changed";
const UNEXPLAINED: &str = "UNEXPLAINED";

struct CheckreinAndCodexPatchRuns {
    category: &'static str,
    differs: bool,
    story: String,
}

fn compare_patch_parity_case(
    case: &PatchParityCase,
    place: &Path,
    tool: &Path,
) -> Result<CheckreinAndCodexPatchRuns, String> {
    // The trees lie one level below what is compared, so that a write to `../outside` is seen.
    let (theirs, ours) = (place.join("theirs/tree"), place.join("ours/tree"));
    write_parity_case_tree(case, &theirs)?;
    write_parity_case_tree(case, &ours)?;
    let before = read_tree_contents(place.join("theirs").as_path())?;
    // Absolute paths and the root's name are placeholders in a case, since each tree has its own.
    let patch = |root: &Path| {
        let name = root.file_name().unwrap_or_default().to_string_lossy();
        case.patch
            .replace("{root}", &root.display().to_string())
            .replace("{name}", &name)
    };
    let output = Command::new(tool)
        .arg(patch(&theirs))
        .current_dir(&theirs)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    // The journal (`memory`) lies outside of both trees, or it would be a difference.
    let done = apply_patch_with_checkrein(&patch(&ours), &ours, &place.join("memory"));
    let after_theirs = read_tree_contents(&place.join("theirs"))?;
    let after_ours = read_tree_contents(&place.join("ours"))?;
    let succeeded = output.status.success();
    let what =
        classify_patch_parity_difference(&before, succeeded, &after_theirs, &done, &after_ours);
    let differs = what != SAME && what != BOTH_REFUSE;
    let mut story = String::new();
    if differs {
        story = format!(
            "{}\nbefore: {}\ncodex: {} {}\n  {}\nours: {}\n  {}",
            case.patch,
            describe_tree_differences(&before, &[&after_theirs, &after_ours]),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim(),
            describe_tree_differences(&after_theirs, &[&before, &after_ours]),
            match &done {
                Ok(plan) => format!("{:?} {:?}", plan.listed_actions, plan.hazards),
                Err(refusals) => render_patch_refusals(refusals),
            },
            describe_tree_differences(&after_ours, &[&before, &after_theirs]),
        );
    }
    Ok(CheckreinAndCodexPatchRuns {
        category: what,
        differs,
        story,
    })
}

/// Lists the entries of a tree that are others, or missing, in one of the other trees.
fn describe_tree_differences(one: &TreeBytesByPath, others: &[&TreeBytesByPath]) -> String {
    let differs = |name: &String| others.iter().any(|other| other.get(name) != one.get(name));
    let lines: Vec<String> = one
        .iter()
        .filter(|(name, _)| differs(name))
        .map(|(name, bytes)| format!("{name}: {:?}", String::from_utf8_lossy(bytes)))
        .collect();
    lines.join("\n  ")
}

fn apply_patch_with_checkrein(
    text: &str,
    root: &Path,
    memory: &Path,
) -> Result<PatchPlan, Vec<PatchRefusal>> {
    let patch = parse_patch(text, None).map_err(|refusal| vec![refusal])?;
    let disk = DiskTree::open_file_tree(root, u64::MAX).map_err(|_| Vec::new())?;
    let plan = plan_patch_against_tree(
        &patch,
        &disk,
        &PathBelowRoot::tree_root_path(),
        HunkMatchDialect::Git,
    )?;
    apply_patch_plan(&plan, &disk, memory).map_err(|_| Vec::new())?;
    Ok(plan)
}

fn classify_patch_parity_difference(
    before: &TreeBytesByPath,
    succeeded: bool,
    theirs: &TreeBytesByPath,
    done: &Result<PatchPlan, Vec<PatchRefusal>>,
    ours: &TreeBytesByPath,
) -> &'static str {
    let self_move = match done {
        Ok(plan) => plan
            .hazards
            .iter()
            .any(|one| one.cause == PatchRefusalCause::SelfMove),
        Err(all) => all
            .iter()
            .any(|one| one.cause == PatchRefusalCause::SelfMove),
    };
    let refused = |cause: PatchRefusalCause| matches!(done, Err(all) if all.iter().any(|one| one.cause == cause));
    match done {
        Ok(_) if succeeded && theirs == ours => return SAME,
        // Nothing excuses a refusal of ours that has changed something, whatever Codex did.
        Err(_) if ours != before => return UNEXPLAINED,
        _ if self_move => return "codex deletes a file moved onto itself; ours keeps it",
        Err(_) if !succeeded && theirs == before => return BOTH_REFUSE,
        Err(_) if !succeeded => return "codex stops half way; ours changes nothing",
        _ => {}
    }
    // Codex failed where ours applied: all refusals of ours have returned above.
    if !succeeded {
        return UNEXPLAINED;
    }
    // Codex applied what ours refuses on purpose.
    if refused(PatchRefusalCause::OutsideRoot) {
        return "codex writes outside of the root; ours refuses";
    }
    if refused(PatchRefusalCause::InsideGit) {
        return "codex writes into .git; ours refuses";
    }
    if refused(PatchRefusalCause::SameFile) {
        return "codex writes one file by two names; ours refuses";
    }
    if refused(PatchRefusalCause::Unsupported) {
        return "codex removes a symbolic link; ours leaves that to a shell";
    }
    UNEXPLAINED
}

fn write_parity_case_tree(case: &PatchParityCase, root: &Path) -> Result<(), String> {
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(root)?;
        fs::create_dir_all(root.join("src"))?;
        for (name, text) in &case.files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap_or(root))?;
            fs::write(path, text)?;
        }
        Ok(())
    };
    write().map_err(|error| error.to_string())?;
    for (name, target) in &case.links {
        create_symlink(Path::new(target), &root.join(name))?;
    }
    Ok(())
}

fn read_tree_contents(root: &Path) -> Result<TreeBytesByPath, String> {
    let mut found = TreeBytesByPath::new();
    let mut folders = vec![root.to_owned()];
    let mut walk = || -> std::io::Result<()> {
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                let name = path
                    .strip_prefix(root)
                    .unwrap_or(&path)
                    .to_string_lossy()
                    .into_owned();
                let kind = fs::symlink_metadata(&path)?.file_type();
                if kind.is_symlink() {
                    let target = fs::read_link(&path)?;
                    found.insert(
                        format!("{name}@"),
                        target.to_string_lossy().as_bytes().to_vec(),
                    );
                } else if kind.is_dir() {
                    found.insert(format!("{name}/"), Vec::new());
                    folders.push(path);
                } else {
                    found.insert(name, fs::read(&path)?);
                }
            }
        }
        Ok(())
    };
    walk().map_err(|error| error.to_string())?;
    Ok(found)
}
