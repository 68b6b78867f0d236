//! Bytes, bytes per second and seconds as distinct types, so that they cannot be mixed up. A GB/s is 10^9 bytes per second, as in
//! publications.

use std::ops::{Add, Div, Mul};

/// Bytes moved or stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Volume(pub f64);

/// Bytes per second.
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
    /// A bandwidth that never limits.
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
