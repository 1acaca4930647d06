//! The figures of one preset over many runs.

use std::collections::BTreeMap;

use checkrein_verifiers::judge::calibration::{ConfidenceInterval, Proportion, Z};

use super::recorded_runs::RecordedRun;
use super::run_under_preset::{DetectorActionCounts, PresetOutcomeForRun};

/// Fewer set-ups say nothing about the next one.
const MIN_SETUPS: usize = 10;
/// Times that set-ups are drawn again for an interval.
const RESAMPLES: usize = 2000;
/// The seed of the draws: the same file gives the same figures.
const SEED: u64 = 7;

/// What a preset would have done to the runs of a file.
#[derive(Debug, Clone)]
pub(super) struct PresetReplayStatistics {
    /// Of the halted runs whose ending is known, those that succeeded later.
    pub(super) halted: Proportion,
    /// All runs that would have been halted.
    pub(super) all_halted: u64,
    /// Runs whose source does not say how they ended.
    pub(super) unknown: u64,
    /// Of the successful runs, those that would have been halted.
    pub(super) lost: Proportion,
    /// 95 % interval of `lost`: bootstrap over set-ups, since runs of one set-up are alike.
    pub(super) lost_interval: Option<ConfidenceInterval>,
    /// Calls of all runs.
    pub(super) calls: u64,
    /// Words in all runs.
    pub(super) words: u64,
    /// Calls of runs that failed.
    pub(super) failed_calls: u64,
    /// Those of them that a halt would have saved.
    pub(super) saved_calls: u64,
    /// Output tokens of failed runs that a halt would have saved, where they are recorded.
    pub(super) saved_tokens: u64,
    /// Odds of later success of the halted, beside runs of the same set-up that made as many calls
    /// unhalted (Mantel and Haenszel 1959). `None` if nothing can be compared.
    pub(super) odds_ratio: Option<f64>,
    /// Its 95 % interval, by the variance of Robins, Breslow and Greenland (1986), which holds for few
    /// large strata and for many small ones.
    pub(super) odds_interval: Option<ConfidenceInterval>,
    /// What each detector did.
    pub(super) detectors: BTreeMap<String, DetectorActionCounts>,
}

/// The sums of one set-up, from which the figures of any set of set-ups are computed.
#[derive(Debug, Clone, Copy, Default)]
struct SetupOutcomeSums {
    successes: u64,
    lost: u64,
    odds: MantelHaenszelSums,
}

/// The sums over strata of Mantel and Haenszel's ratio, and those of its variance. In one stratum of
/// `n` runs, R is halted successes times failures of peers over `n`, and S the opposite; P is the
/// share of runs on the first diagonal, and Q that on the second.
#[derive(Debug, Clone, Copy, Default)]
struct MantelHaenszelSums {
    r: f64,
    s: f64,
    pr: f64,
    ps_and_qr: f64,
    qs: f64,
}

impl MantelHaenszelSums {
    fn add_mantel_haenszel_stratum(&mut self, halted: OutcomeCounts, peers: OutcomeCounts) {
        let n = halted.successes + halted.failures + peers.successes + peers.failures;
        let (r, s) = (
            halted.successes * peers.failures / n,
            halted.failures * peers.successes / n,
        );
        let (p, q) = (
            (halted.successes + peers.failures) / n,
            (halted.failures + peers.successes) / n,
        );
        self.add_sums(Self {
            r,
            s,
            pr: p * r,
            ps_and_qr: p * s + q * r,
            qs: q * s,
        });
    }

    fn add_sums(&mut self, other: Self) {
        self.r += other.r;
        self.s += other.s;
        self.pr += other.pr;
        self.ps_and_qr += other.ps_and_qr;
        self.qs += other.qs;
    }

    fn odds_ratio(self) -> Option<f64> {
        (self.s > 0.0).then(|| self.r / self.s)
    }

    fn odds_ratio_confidence_interval(self) -> Option<ConfidenceInterval> {
        if self.r <= 0.0 || self.s <= 0.0 {
            return None;
        }
        let variance = self.pr / (2.0 * self.r * self.r)
            + self.ps_and_qr / (2.0 * self.r * self.s)
            + self.qs / (2.0 * self.s * self.s);
        let (middle, half) = ((self.r / self.s).ln(), Z * variance.sqrt());
        Some(ConfidenceInterval {
            low: (middle - half).exp(),
            high: (middle + half).exp(),
        })
    }
}

/// Runs by how they ended.
#[derive(Debug, Clone, Copy, Default)]
struct OutcomeCounts {
    successes: f64,
    failures: f64,
}

impl OutcomeCounts {
    fn count_outcome(&mut self, run: &RecordedRun) {
        match run.success {
            Some(true) => self.successes += 1.0,
            Some(false) => self.failures += 1.0,
            None => {}
        }
    }
}

impl PresetReplayStatistics {
    pub(super) fn from_runs(runs: &[(&RecordedRun, &PresetOutcomeForRun)]) -> Self {
        let mut sums: BTreeMap<&str, SetupOutcomeSums> = BTreeMap::new();
        let mut by_setup: BTreeMap<&str, Vec<(&RecordedRun, &PresetOutcomeForRun)>> =
            BTreeMap::new();
        let (mut halted, mut halted_successful, mut all_halted, mut unknown) = (0, 0, 0, 0);
        let (mut calls, mut words, mut failed_calls, mut saved_calls, mut saved_tokens) =
            (0, 0, 0, 0, 0);
        let mut detectors: BTreeMap<String, DetectorActionCounts> = BTreeMap::new();
        for (run, found) in runs {
            by_setup.entry(&run.setup).or_default().push((run, found));
            let sum = sums.entry(&run.setup).or_default();
            calls += run.calls;
            words += found.words;
            // A run whose source does not say how it ended is counted for words and detectors only.
            unknown += u64::from(run.success.is_none());
            let success = run.success == Some(true);
            let failed = run.success == Some(false);
            sum.successes += u64::from(success);
            if failed {
                failed_calls += run.calls;
            }
            all_halted += u64::from(found.halted.is_some());
            if let (Some((at, _)), Some(_)) = (&found.halted, run.success) {
                halted += 1;
                halted_successful += u64::from(success);
                sum.lost += u64::from(success);
                if failed {
                    saved_calls += run.calls.saturating_sub(*at);
                    saved_tokens += found.tokens_after;
                }
            }
            for (name, did) in &found.detectors {
                let all = detectors.entry(name.clone()).or_default();
                all.words += did.words;
                all.denied += did.denied;
                all.halted += did.halted;
            }
        }
        for (setup, runs) in &by_setup {
            if let Some(sum) = sums.get_mut(setup) {
                sum.add_halted_and_peer_strata(runs);
            }
        }
        let sums: Vec<SetupOutcomeSums> = sums.into_values().collect();
        let lost = lost_success_proportion(&sums);
        let mut odds = MantelHaenszelSums::default();
        sums.iter().for_each(|sum| odds.add_sums(sum.odds));
        Self {
            halted: Proportion::new(halted_successful, halted),
            all_halted,
            unknown,
            lost,
            lost_interval: bootstrap_interval(&sums, |sums| lost_success_proportion(sums).ratio()),
            calls,
            words,
            failed_calls,
            saved_calls,
            saved_tokens,
            odds_ratio: odds.odds_ratio(),
            odds_interval: odds.odds_ratio_confidence_interval(),
            detectors,
        }
    }

    /// The share of the calls of failed runs that would have been saved.
    pub(super) fn saved_share_of_failed_run_calls(&self) -> Option<f64> {
        Proportion::new(self.saved_calls, self.failed_calls).ratio()
    }

    /// Words per 100 calls.
    pub(super) fn words_per_hundred_calls(&self) -> Option<f64> {
        (self.calls > 0).then(|| self.words as f64 * 100.0 / self.calls as f64)
    }
}

impl SetupOutcomeSums {
    /// Adds the strata of a set-up: at each call at which runs were halted, these beside those that
    /// made that call and were not halted by then.
    fn add_halted_and_peer_strata(&mut self, runs: &[(&RecordedRun, &PresetOutcomeForRun)]) {
        let mut strata: BTreeMap<u64, OutcomeCounts> = BTreeMap::new();
        for (run, found) in runs {
            if let (Some((at, _)), Some(_)) = (&found.halted, run.success) {
                strata.entry(*at).or_default().count_outcome(run);
            }
        }
        for (at, halted) in strata {
            let mut peers = OutcomeCounts::default();
            for (run, found) in runs {
                let is_unhalted = found.halted.as_ref().is_none_or(|(later, _)| *later > at);
                if run.calls > at && is_unhalted {
                    peers.count_outcome(run);
                }
            }
            self.odds.add_mantel_haenszel_stratum(halted, peers);
        }
    }
}

fn lost_success_proportion(sums: &[SetupOutcomeSums]) -> Proportion {
    Proportion::new(
        sums.iter().map(|sum| sum.lost).sum(),
        sums.iter().map(|sum| sum.successes).sum(),
    )
}

/// Returns the 2.5 and 97.5 % points of a figure over sets of set-ups that are drawn with replacement
/// (percentile bootstrap, Efron 1979). `None` if the figure is not defined for most draws.
fn bootstrap_interval(
    sums: &[SetupOutcomeSums],
    figure: impl Fn(&[SetupOutcomeSums]) -> Option<f64>,
) -> Option<ConfidenceInterval> {
    if sums.len() < MIN_SETUPS {
        return None;
    }
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut figures: Vec<f64> = Vec::new();
    let mut drawn = Vec::with_capacity(sums.len());
    for _ in 0..RESAMPLES {
        drawn.clear();
        drawn.extend((0..sums.len()).filter_map(|_| random.choice(sums)));
        figures.extend(figure(&drawn));
    }
    figures.sort_unstable_by(f64::total_cmp);
    if figures.len() * 2 < RESAMPLES {
        return None;
    }
    let point = |thousandths: usize| {
        figures
            .get((figures.len() - 1) * thousandths / 1000)
            .copied()
    };
    Some(ConfidenceInterval {
        low: point(25)?,
        high: point(975)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(
        setup: &str,
        calls: u64,
        success: bool,
        halted: Option<u64>,
    ) -> (RecordedRun, PresetOutcomeForRun) {
        let run = RecordedRun {
            setup: setup.to_owned(),
            task: String::new(),
            calls,
            success: Some(success),
        };
        let found = PresetOutcomeForRun {
            halted: halted.map(|at| (at, "cycle".to_owned())),
            ..PresetOutcomeForRun::default()
        };
        (run, found)
    }

    fn figures(runs: &[(RecordedRun, PresetOutcomeForRun)]) -> PresetReplayStatistics {
        let pairs: Vec<_> = runs.iter().map(|(run, found)| (run, found)).collect();
        PresetReplayStatistics::from_runs(&pairs)
    }

    #[test]
    fn what_was_saved_and_lost() {
        let found = figures(&[
            run("a", 10, false, Some(4)),
            run("a", 10, true, Some(4)),
            run("a", 10, false, None),
            run("a", 10, true, None),
        ]);
        assert_eq!((found.halted.hits, found.halted.of), (1, 2));
        assert_eq!((found.lost.hits, found.lost.of), (1, 2));
        assert_eq!((found.saved_calls, found.failed_calls), (6, 20));
    }

    /// Mantel and Haenszel's ratio, by hand: one stratum of 2 x 2, then two.
    #[test]
    fn halted_runs_are_compared_with_unhalted_ones_of_their_set_up() {
        let mut runs = vec![run("a", 9, true, Some(3))];
        runs.extend((0..3).map(|_| run("a", 9, false, Some(3))));
        runs.extend((0..4).map(|_| run("a", 9, true, None)));
        runs.extend((0..2).map(|_| run("a", 9, false, None)));
        // A run that was over by then is no peer.
        runs.push(run("a", 3, true, None));
        let odds = figures(&runs).odds_ratio.unwrap();
        assert!((odds - (1.0 * 2.0) / (3.0 * 4.0)).abs() < 1e-12, "{odds}");
        runs.extend((0..2).map(|_| run("b", 9, false, Some(5))));
        runs.extend((0..2).map(|_| run("b", 9, true, None)));
        let odds = figures(&runs).odds_ratio.unwrap();
        let by_hand = (2.0 / 10.0) / (12.0 / 10.0 + 4.0 / 4.0);
        assert!((odds - by_hand).abs() < 1e-12, "{odds} and not {by_hand}");
    }

    /// With one stratum the variance is Woolf's: the sum of the four counts' reciprocals.
    #[test]
    fn one_stratum_has_the_textbook_interval() {
        let counts = |successes, failures| OutcomeCounts {
            successes,
            failures,
        };
        let mut sums = MantelHaenszelSums::default();
        sums.add_mantel_haenszel_stratum(counts(5.0, 20.0), counts(10.0, 15.0));
        let (odds, ends) = (
            sums.odds_ratio().unwrap(),
            sums.odds_ratio_confidence_interval().unwrap(),
        );
        let half = Z * (1.0_f64 / 5.0 + 1.0 / 20.0 + 1.0 / 10.0 + 1.0 / 15.0).sqrt();
        assert!((odds - 0.375).abs() < 1e-12);
        assert!((ends.high.ln() - odds.ln() - half).abs() < 1e-9, "{ends:?}");
        assert!((odds.ln() - ends.low.ln() - half).abs() < 1e-9, "{ends:?}");
    }

    #[test]
    fn the_same_runs_give_the_same_interval() {
        let runs: Vec<_> = (0..40_u32)
            .map(|at| {
                let halted = (at % 7 == 0).then_some(2);
                run(&format!("set-up {}", at % 12), 5, at % 3 == 0, halted)
            })
            .collect();
        let ends = |found: PresetReplayStatistics| found.lost_interval.unwrap();
        let (one, again) = (ends(figures(&runs)), ends(figures(&runs)));
        assert_eq!((one.low, one.high), (again.low, again.high));
        let share = figures(&runs).lost.ratio().unwrap();
        assert!(one.low <= share && share <= one.high, "{one:?} {share}");
        assert!(figures(&[]).lost_interval.is_none());
    }
}
