//! Bytes, bytes a second, seconds: types of their own, so that they cannot be mixed. Bandwidths are of 10^9 bytes, as published.

use std::ops::{Add, Div, Mul};

/// Bytes moved or stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Volume(pub f64);

/// Bytes a second.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Bandwidth(pub f64);

#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Seconds(pub f64);

impl Volume {
    #[must_use]
    pub fn from_mib(mib: f64) -> Self {
        Self(mib * 1_048_576.0)
    }
}

impl Bandwidth {
    /// What never limits.
    pub const UNLIMITED: Self = Self(f64::INFINITY);

    #[must_use]
    pub fn from_gb_per_s(value: f64) -> Self {
        Self(value * 1e9)
    }

    #[must_use]
    pub fn gb_per_s(self) -> f64 {
        self.0 / 1e9
    }
}

impl Add for Volume {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Mul<f64> for Volume {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self(self.0 * factor)
    }
}

impl Div<Bandwidth> for Volume {
    type Output = Seconds;
    fn div(self, bandwidth: Bandwidth) -> Seconds {
        Seconds(self.0 / bandwidth.0)
    }
}

impl Div<Seconds> for Volume {
    type Output = Bandwidth;
    fn div(self, time: Seconds) -> Bandwidth {
        Bandwidth(self.0 / time.0)
    }
}
