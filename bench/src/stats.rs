//! Medians, and how far the samples lie from them.

/// One sample a round.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    pub fn push(&mut self, sample: f64) {
        self.0.push(sample);
    }

    /// The middle sample, or halfway between the middle two. There must be one.
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            (sorted[middle - 1] + sorted[middle]) / 2.0
        }
    }

    /// The noise: half of the samples lie no further than this from the median.
    pub fn spread(&self) -> f64 {
        let median = self.median();
        Self(self.0.iter().map(|sample| (sample - median).abs()).collect()).median()
    }

    /// This many times the other, round by round: what slows down a whole round falls out.
    pub fn ratio(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(this, other)| this / other).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Samples {
        Samples(values.to_vec())
    }

    #[test]
    fn one_slow_round_moves_neither_median_nor_spread_far() {
        assert_eq!(samples(&[3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(samples(&[4.0, 1.0, 2.0, 3.0]).median(), 2.5);
        let noisy = samples(&[1.0, 1.1, 0.9, 1.0, 50.0]);
        assert_eq!(noisy.median(), 1.0);
        assert!(noisy.spread() < 0.11);
        assert_eq!(samples(&[7.0]).spread(), 0.0);
    }

    #[test]
    fn ratios_are_of_the_same_round() {
        let ratio = samples(&[2.0, 20.0, 200.0]).ratio(&samples(&[1.0, 10.0, 100.0]));
        assert_eq!((ratio.median(), ratio.spread()), (2.0, 0.0));
    }
}
