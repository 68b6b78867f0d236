//! The time that a program computes without accessing its large objects. No placement changes it: a program that computes half of its time gains half.
//!
//! What is known is a part of the run, not a time on the machine that is asked about. So it is taken to have the same part there when memory is as it
//! was when the program was recorded: a machine with faster memory is taken to have faster cores too.

use crate::random::SplitMix;
use crate::units::Seconds;
use firsttouch_model::traffic::Computing;

/// A program computes at most this part of its time. With more, nothing would be left to compare.
const MOST: f64 = 0.995;

/// The time beside that at memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Aside {
    known: Option<(Computing, f64)>,
}

impl Aside {
    /// `at_memory`: the time that the accesses take on the machine with memory as it was when the program was recorded.
    pub fn new(computing: Computing, at_memory: Seconds) -> Self {
        Self { known: Some((computing, at_memory.0)) }
    }

    /// As sampled.
    pub fn time(&self) -> Seconds {
        self.known.map_or(Seconds(0.0), |(computing, at_memory)| Seconds(beside(computing.share, at_memory)))
    }

    /// For a resampled program.
    pub fn drawn(&self, random: &mut SplitMix) -> Seconds {
        self.known.map_or(Seconds(0.0), |(computing, at_memory)| {
            Seconds(beside(computing.share + random.normal() * computing.standard_error, at_memory))
        })
    }
}

fn beside(share: f64, at_memory: f64) -> f64 {
    let share = share.clamp(0.0, MOST);
    at_memory * share / (1.0 - share)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the part of the run is kept, that draws spread around it, and that nothing is added where nothing is known.
    #[test]
    fn the_part_is_kept() {
        let aside = Aside::new(Computing { share: 0.25, standard_error: 0.031, samples: 400, was_local: true }, Seconds(3.0));
        assert!((aside.time().0 - 1.0).abs() < 1e-12);
        let mut random = SplitMix::new();
        let draws: Vec<f64> = (0..2000).map(|_| aside.drawn(&mut random).0).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        assert!((mean - 1.0).abs() < 0.02 && draws.iter().all(|draw| *draw >= 0.0), "{mean}");
        // The error of the time is that of the share times 3 / 0.75^2.
        let spread = (draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / draws.len() as f64).sqrt();
        assert!((spread - 0.163).abs() < 0.02, "{spread}");
        let all = Aside::new(Computing { share: 1.0, standard_error: 0.0, samples: 10, was_local: true }, Seconds(1.0));
        assert!(all.time().0.is_finite());
        assert_eq!((Aside::default().time().0, Aside::default().drawn(&mut random).0), (0.0, 0.0));
    }
}
