//! Computes what an answer costs, in integer millionths of a dollar. A model without a price costs
//! `None`, which is not zero.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::AnswerTokenUsage;
use crate::providers::provider_key_storage_name;

/// The price table of this build. Its first lines give its date.
const TABLE: &str = include_str!("prices.tsv");

/// Names that OpenRouter uses for makers of models in this table.
const MAKERS: &[(&str, &str)] = &[
    ("google", "gemini"),
    ("mistralai", "mistral"),
    ("x-ai", "xai"),
];

/// Prices in millionths of a dollar per million tokens of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelPrice {
    /// Read anew.
    pub input: u64,
    /// Read from the provider's cache; as `input` if nothing is said.
    pub cache_read: Option<u64>,
    /// Written to the provider's cache; as `input` if nothing is said.
    pub cache_write: Option<u64>,
    /// Written.
    pub output: u64,
}

/// The prices of this build, and a person's own prices, which take precedence.
#[derive(Debug, Clone, Default)]
pub struct PriceList {
    /// By normalized name.
    own: BTreeMap<String, ModelPrice>,
}

/// A line of the table.
struct ModelPriceRow {
    model: String,
    /// For requests with more input tokens than this.
    above: u64,
    price: ModelPrice,
}

impl PriceList {
    /// Creates a list with a person's prices by `provider/model`. A price also applies to later
    /// versions of the model, which have a date or the like at the end of the name, as the prices
    /// of this build do.
    pub fn new(own: BTreeMap<String, ModelPrice>) -> Self {
        let own = own
            .into_iter()
            .map(|(name, price)| (normalized_model_name(&name), price));
        Self { own: own.collect() }
    }

    /// Returns the cost of one answer of this model in millionths of a dollar, rounded up.
    pub fn usage_cost(&self, name: &str, usage: &AnswerTokenUsage) -> Option<u64> {
        // A provider that does not report both leaves the cost unknown. A cap on costs must not
        // count half of it.
        let (input, output) = (usage.input?, usage.output?);
        let (cached, written) = (
            usage.cache_read.unwrap_or(0),
            usage.cache_write.unwrap_or(0),
        );
        let whole = input.saturating_add(cached).saturating_add(written);
        let price = self.model_price(name, whole)?;
        let parts = [
            (input, price.input),
            (cached, price.cache_read.unwrap_or(price.input)),
            (written, price.cache_write.unwrap_or(price.input)),
            (output, price.output),
        ];
        let sum: u128 = parts
            .iter()
            .map(|(tokens, price)| u128::from(*tokens).saturating_mul(u128::from(*price)))
            .fold(0, u128::saturating_add);
        // A sum beyond `u64` is not an unknown one: it must still reach a cap on costs.
        Some(u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }

    /// Returns the price of this model for a request with this many input tokens in all.
    pub fn model_price(&self, name: &str, input: u64) -> Option<ModelPrice> {
        let name = normalized_model_name(name);
        let own = self
            .own
            .iter()
            .filter(|(model, _)| is_model_version_of(&name, model))
            // The longest matching name is the most specific model.
            .max_by_key(|(model, _)| model.len());
        own.map(|(_, price)| *price).or_else(|| {
            built_in_prices()
                .iter()
                .filter(|line| is_model_version_of(&name, &line.model))
                .filter(|line| line.above == 0 || input > line.above)
                .max_by_key(|line| (line.model.len(), line.above))
                .map(|line| line.price)
        })
    }
}

/// Normalizes the spellings of a model's name.
fn normalized_model_name(name: &str) -> String {
    let lower = name.trim().to_ascii_lowercase();
    let (provider, model) = lower.split_once('/').unwrap_or(("", &lower));
    let (provider, model) = match model.split_once('/') {
        // OpenRouter charges the prices of the models' makers.
        Some((maker, model)) if provider == "openrouter" => {
            let known = MAKERS.iter().find(|(theirs, _)| *theirs == maker);
            (known.map_or(maker, |(_, ours)| ours), model)
        }
        _ => (provider_key_storage_name(provider), model),
    };
    format!("{provider}/{}", model.replace('.', "-"))
}

/// Returns whether a name is that model, possibly followed by a date, a build number or the like.
/// Another model whose name begins the same may cost ten times as much.
fn is_model_version_of(name: &str, model: &str) -> bool {
    let Some(rest) = name.strip_prefix(model) else {
        return false;
    };
    let Some(rest) = rest.strip_prefix(['-', '@']) else {
        return rest.is_empty();
    };
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = rest.split('-');
    let first = parts.next().unwrap_or_default();
    // A shorter number is a version of the model itself: `-4` and `-5` may be different models with
    // different prices.
    let begins = matches!(first, "latest" | "preview" | "exp") || first.len() >= 3 && number(first);
    begins && parts.all(number)
}

fn built_in_prices() -> &'static [ModelPriceRow] {
    static LINES: OnceLock<Vec<ModelPriceRow>> = OnceLock::new();
    LINES.get_or_init(|| price_table_rows().filter_map(parse_price_row).collect())
}

fn price_table_rows() -> impl Iterator<Item = &'static str> {
    TABLE
        .lines()
        .filter(|row| !row.starts_with('#') && !row.is_empty())
}

fn parse_price_row(row: &str) -> Option<ModelPriceRow> {
    let mut fields = row.split('\t');
    let model = normalized_model_name(fields.next()?);
    let above = fields.next()?.parse().ok()?;
    let mut price = || match fields.next()? {
        "-" => Some(None),
        dollars => parse_micro_dollars(dollars).map(Some),
    };
    let (input, cached, written, output) = (price()??, price()?, price()?, price()??);
    let price = ModelPrice {
        input,
        cache_read: cached,
        cache_write: written,
        output,
    };
    Some(ModelPriceRow {
        model,
        above,
        price,
    })
}

/// Parses dollars with at most six decimals.
fn parse_micro_dollars(dollars: &str) -> Option<u64> {
    let (whole, part) = dollars.split_once('.').unwrap_or((dollars, ""));
    let whole: u64 = whole.parse().ok()?;
    let part: u64 = format!("{part:0<6}")
        .parse()
        .ok()
        .filter(|_| part.len() <= 6)?;
    whole.checked_mul(1_000_000)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, cached: u64, written: u64, output: u64) -> AnswerTokenUsage {
        AnswerTokenUsage {
            input: Some(input),
            cache_read: Some(cached),
            cache_write: Some(written),
            output: Some(output),
        }
    }

    #[test]
    fn every_line_of_the_table_is_read_and_is_sensible() {
        assert_eq!(built_in_prices().len(), price_table_rows().count());
        for line in built_in_prices() {
            let (provider, _) = line.model.split_once('/').unwrap();
            assert!(
                crate::providers::parse_model_name(&format!("{provider}/m")).is_ok(),
                "{}",
                line.model
            );
            assert!(line.price.output >= line.price.input, "{}", line.model);
            assert!(
                line.price
                    .cache_read
                    .is_none_or(|cached| cached <= line.price.input)
            );
            let same =
                |other: &&ModelPriceRow| other.model == line.model && other.above == line.above;
            assert_eq!(
                built_in_prices().iter().filter(same).count(),
                1,
                "{}",
                line.model
            );
        }
    }

    #[test]
    fn an_answer_costs_the_sum_of_its_kinds() {
        let prices = PriceList::default();
        // 5, 0.5, 6.25 and 25 dollars.
        let cost = prices.usage_cost("anthropic/claude-opus-5", &usage(1000, 10_000, 100, 200));
        assert_eq!(cost, Some(5000 + 5000 + 625 + 5000));
        // A token of something is not nothing.
        let cost = prices.usage_cost("openai/gpt-5-nano", &usage(1, 0, 0, 0));
        assert_eq!(cost, Some(1));
        assert_eq!(
            prices.usage_cost("openai/gpt-5", &usage(u64::MAX, 0, 0, u64::MAX)),
            Some(u64::MAX)
        );
    }

    #[test]
    fn what_is_not_known_costs_nothing_known() {
        let prices = PriceList::default();
        for name in [
            "ollama/llama3",
            "openai/gpt-99",
            "anthropic/claude-opus-5-9",
            "",
            "x",
        ] {
            assert_eq!(prices.usage_cost(name, &usage(1, 1, 1, 1)), None, "{name}");
        }
        let unsaid = AnswerTokenUsage::default();
        assert_eq!(prices.usage_cost("openai/gpt-5", &unsaid), None);
    }

    #[test]
    fn a_name_has_the_price_of_its_model_and_of_no_other() {
        let price = |name: &str| {
            PriceList::default()
                .model_price(name, 0)
                .map(|price| price.input)
        };
        let opus = price("anthropic/claude-opus-4-5");
        assert_eq!(opus, Some(5_000_000));
        for name in [
            "anthropic/claude-opus-4-5-20251101",
            "anthropic/claude-opus-4.5",
            "anthropic/claude-opus-4-5@20251101",
            "openrouter/anthropic/claude-opus-4.5",
        ] {
            assert_eq!(price(name), opus, "{name}");
        }
        assert_eq!(price("anthropic/claude-opus-4-20250514"), Some(15_000_000));
        assert_eq!(price("openai-chat/gpt-5-2025-08-07"), Some(1_250_000));
        assert_eq!(price("openai/gpt-5-pro"), Some(15_000_000));
        assert_eq!(
            price("google/gemini-2.5-flash-preview-09-2025"),
            Some(300_000)
        );
        assert_eq!(price("openrouter/openai/gpt-5:free"), None);
    }

    #[test]
    fn a_large_request_is_dearer() {
        let prices = PriceList::default();
        let small = prices
            .model_price("gemini/gemini-2.5-pro", 200_000)
            .unwrap();
        let large = prices
            .model_price("gemini/gemini-2.5-pro", 200_001)
            .unwrap();
        assert_eq!((small.input, large.input), (1_250_000, 2_500_000));
    }

    #[test]
    fn a_persons_price_goes_before() {
        let own = ModelPrice {
            input: 1,
            ..ModelPrice::default()
        };
        let prices = PriceList::new(BTreeMap::from([
            ("openai/gpt-5".to_owned(), own),
            ("ollama/llama3.3:70b".to_owned(), ModelPrice::default()),
        ]));
        assert_eq!(prices.model_price("openai/gpt-5-2025-08-07", 0), Some(own));
        assert_eq!(
            prices.model_price("openai/gpt-5-mini", 0).unwrap().input,
            250_000
        );
        assert_eq!(
            prices.usage_cost("ollama/llama3.3:70b", &usage(9, 9, 9, 9)),
            Some(0)
        );
    }
}
