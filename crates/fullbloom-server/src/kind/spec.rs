//! [`Spec`]: the parameters of a filter as texts, for logs, manifests and people.

use std::borrow::Cow;
use std::sync::Arc;

use crate::fault::{Fault, Result};

/// The kind and its parameters; missing ones have their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// Name of the kind in the registry.
    pub kind: Cow<'static, str>,
    /// The parameters of the constructor as texts, in the order given. Filters with equal lists share one.
    pub options: Arc<Vec<(String, String)>>,
    /// Seed of the key hash.
    pub seed: u64,
    /// True if keys are hashed under a secret of the filter's own.
    pub keyed: bool,
}

impl Spec {
    /// The text of a parameter, if it was given.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str())
    }

    /// Adds a parameter.
    pub fn add(&mut self, name: impl ToString, text: impl ToString) {
        Arc::make_mut(&mut self.options).push((name.to_string(), text.to_string()));
    }

    /// Adds a parameter, as a builder.
    pub fn with(mut self, name: &str, text: impl ToString) -> Self {
        self.add(name, text);
        self
    }

    /// One line: `kind name=text ...`.
    pub fn line(&self) -> String {
        let mut line = format!("{} seed={} keyed={}", self.kind, self.seed, self.keyed);
        for (name, text) in self.options.iter() {
            line.push_str(&format!(" {name}={text}"));
        }
        line
    }

    /// Parses [`Spec::line`].
    pub fn parse(line: &str) -> Result<Self> {
        let mut words = line.split(' ');
        let mut spec = Spec { kind: words.next().unwrap_or_default().to_string().into(), ..Spec::default() };
        for word in words {
            let wrong = || Fault::invalid(format!("a parameter is name=value, got {word:?}"));
            let (name, text) = word.split_once('=').ok_or_else(wrong)?;
            match name {
                "seed" => spec.seed = text.parse().map_err(|_| wrong())?,
                "keyed" => spec.keyed = text.parse().map_err(|_| wrong())?,
                _ => spec.add(name, text),
            }
        }
        Ok(spec)
    }

    /// Refuses parameters that the constructor of `class` does not have.
    pub(super) fn check_names(&self, class: &str, known: &[&str]) -> Result<()> {
        match self.options.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some((name, _)) => {
                Err(Fault::invalid(format!("a {class} has no parameter {name:?}; it has {}", known.join(", "))))
            }
        }
    }

    /// Refuses texts that do not fit into a line.
    pub fn check(&self) -> Result<()> {
        let plain = |text: &str| {
            !text.is_empty() && text.len() <= 64 && text.bytes().all(|b| b.is_ascii_graphic() && b != b'=')
        };
        match self.options.iter().find(|(name, text)| !plain(name) || !plain(text)) {
            None => Ok(()),
            Some((name, _)) => Err(Fault::invalid(format!(
                "the value of {:?} must be 1 to 64 visible ASCII characters without \"=\"",
                name.chars().take(32).collect::<String>()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_round_trip_as_lines() {
        let spec = Spec { kind: "bloom".into(), seed: 7, keyed: true, ..Spec::default() }
            .with("capacity", 1000)
            .with("fpr", 0.01);
        assert_eq!(Spec::parse(&spec.line()).ok(), Some(spec));
        assert!(Spec::parse("bloom capacity").is_err());
    }
}
