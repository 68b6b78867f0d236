//! The bandwidth of a controller as a function of the cores that use it: a straight line that bends into a limit.
//!
//! n cores that could draw x = n b together get x / (1 + (x / C)^p)^(1/p): b each while there is room, C in the end; p is the sharpness of
//! the bend. Three measured points determine all three: one core, the bend, and all cores.

use super::streams::Streams;
use std::fmt;

/// Above this sharpness, assume a hard limit. At this sharpness, the curve at the bend is 2 % below it.
const SHARPEST: f64 = 32.0;

/// Bandwidths are in bytes per second, of the traffic that actually passes the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve {
    /// The fraction of the traffic that is written.
    pub write_share: f64,
    /// The bandwidth of one core alone.
    pub core: f64,
    /// The bandwidth that all cores together approach.
    pub limit: f64,
    /// The sharpness p of the bend; infinite for a hard limit.
    pub sharpness: f64,
}

/// The bandwidth that is delivered for an offered load.
#[must_use]
pub fn delivered(offered: f64, limit: f64, sharpness: f64) -> f64 {
    let (low, high) = (offered.min(limit), offered.max(limit));
    // Dividing by the larger one avoids overflow of the power. For an unlimited controller or a hard limit, the result is the minimum.
    if low <= 0.0 || !high.is_finite() || !sharpness.is_finite() {
        return low;
    }
    low * (1.0 + (low / high).powf(sharpness)).powf(-1.0 / sharpness)
}

/// The load that must be offered for this bandwidth to be delivered: the inverse of [`delivered`]. Without end from the limit on.
#[must_use]
pub fn offered(delivered: f64, limit: f64, sharpness: f64) -> f64 {
    if !delivered.is_finite() || !sharpness.is_finite() {
        return delivered;
    }
    let part = (delivered / limit).powf(sharpness);
    if part >= 1.0 { f64::INFINITY } else { delivered * (1.0 - part).powf(-1.0 / sharpness) }
}

/// Why no curve passes through the given points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurveFault {
    Numbers,
    Order,
    NoPoint,
    FirstPoint,
    TooManyPoints,
}

impl fmt::Display for CurveFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Numbers => "cores must be 1 or more, bandwidths positive",
            Self::Order => "points must be in rising order of cores",
            Self::NoPoint => "there is no point",
            Self::FirstPoint => "the first of several points must be that of one core",
            Self::TooManyPoints => "more than three points",
        })
    }
}

impl Curve {
    /// The curve through one, two or three measured points (cores, bytes per second), in ascending order of cores. One point is assumed to
    /// be the limit, with no limit for a single core; two points make a hard limit.
    ///
    /// # Errors
    /// When no curve passes through the points.
    pub fn through(streams: Streams, points: &[(f64, f64)]) -> Result<Self, CurveFault> {
        if points.iter().any(|(cores, rate)| !(cores.is_finite() && *cores >= 1.0 && rate.is_finite() && *rate > 0.0)) {
            return Err(CurveFault::Numbers);
        }
        if points.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            return Err(CurveFault::Order);
        }
        let traffic = streams.traffic_factor();
        let write_share = streams.write_share();
        let of = |core: f64, limit: f64, sharpness: f64| Self {
            write_share,
            core: core * traffic,
            limit: limit * traffic,
            sharpness: if sharpness >= SHARPEST { f64::INFINITY } else { sharpness },
        };
        match *points {
            [(_, all)] => Ok(of(all, all, SHARPEST)),
            [(1.0, one), (_, all)] => Ok(of(one, all, SHARPEST)),
            [(1.0, one), (bend, middle), (last, all)] => {
                let (core, limit, sharpness) = bent(one, (bend, middle), (last, all));
                Ok(of(core, limit, sharpness))
            }
            [] => Err(CurveFault::NoPoint),
            [_, _] | [_, _, _] => Err(CurveFault::FirstPoint),
            _ => Err(CurveFault::TooManyPoints),
        }
    }
}

/// Core, limit and sharpness of the curve through three points: the sharpness by bisection, the others from the first and last point.
fn bent(one: f64, (bend, middle): (f64, f64), (last, all): (f64, f64)) -> (f64, f64, f64) {
    let missing = |sharpness: f64| {
        let (core, limit) = ends(one, (last, all), sharpness)?;
        Some(delivered(bend * core, limit, sharpness) - middle)
    };
    let (mut low, mut high) = (1.0, SHARPEST);
    let sharpness = if missing(high).is_none_or(|short| short <= 0.0) {
        SHARPEST
    } else if missing(low).is_some_and(|short| short >= 0.0) {
        low
    } else {
        for _ in 0..60 {
            let half = f64::midpoint(low, high);
            if missing(half).is_some_and(|short| short >= 0.0) { high = half } else { low = half }
        }
        high
    };
    match ends(one, (last, all), sharpness) {
        Some((core, limit)) if sharpness < SHARPEST => (core, limit, sharpness),
        _ => (one, all, SHARPEST),
    }
}

/// Core and limit for which a curve of this sharpness passes through the first and last point; none if the last point exceeds what `last`
/// cores could draw.
fn ends(one: f64, (last, all): (f64, f64), sharpness: f64) -> Option<(f64, f64)> {
    // With u = core^-p and v = limit^-p in units of the first point: 1 = u + v and (all/one)^-p = last^-p u + v.
    let (all, last) = ((all / one).powf(-sharpness), last.powf(-sharpness));
    let u = (1.0 - all) / (1.0 - last);
    let v = (all - last) / (1.0 - last);
    (u > 0.0 && v > 0.0).then(|| (one * u.powf(-1.0 / sharpness), one * v.powf(-1.0 / sharpness)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Streams = Streams { read: 1.0, write: 0.0, allocate: 0.0 };

    /// Check that a curve passes through its three points, and stays below both the line and the limit.
    #[test]
    fn it_passes_through_its_points() {
        let points = [(1.0, 8.93), (7.0, 54.25), (14.0, 61.82)];
        let curve = Curve::through(LOAD, &points).unwrap();
        for (cores, rate) in points {
            let got = delivered(cores * curve.core, curve.limit, curve.sharpness);
            assert!((got / rate - 1.0).abs() < 1e-6, "{cores}: {got}");
        }
        for cores in 1..=30 {
            let offered = f64::from(cores) * curve.core;
            assert!(delivered(offered, curve.limit, curve.sharpness) <= offered.min(curve.limit));
        }
    }

    /// Check that offering what `offered` says delivers what was asked for, and that nothing delivers more than the limit.
    #[test]
    fn offered_is_the_inverse_of_delivered() {
        for (rate, limit, sharpness) in [(8.6, 63.0, 1.4), (8.6, 9.0, 3.0), (1.0, 1e3, 20.0)] {
            let back = delivered(offered(rate, limit, sharpness), limit, sharpness);
            assert!((back / rate - 1.0).abs() < 1e-9, "{rate}: {back}");
        }
        assert_eq!((offered(5.0, 9.0, f64::INFINITY), offered(9.0, 9.0, 2.0)), (5.0, f64::INFINITY));
    }

    /// Check that a bend above any smooth curve gives a hard limit, and that a reading above the line does not panic.
    #[test]
    fn odd_points_have_a_curve() {
        assert!(Curve::through(LOAD, &[(1.0, 10.0), (2.0, 20.0), (4.0, 20.0)]).unwrap().sharpness.is_infinite());
        assert!(Curve::through(LOAD, &[(1.0, 10.0), (2.0, 30.0), (4.0, 50.0)]).unwrap().sharpness.is_infinite());
        assert!(Curve::through(LOAD, &[(1.0, 10.0), (2.0, 9.0), (4.0, 8.0)]).unwrap().limit > 0.0);
    }

    /// Check the table of points through which no curve passes.
    #[test]
    fn nonsense_is_refused() {
        let nan = f64::NAN;
        for points in [
            &[][..],
            &[(0.0, 1.0)],
            &[(1.0, -1.0)],
            &[(1.0, nan)],
            &[(nan, 1.0)],
            &[(2.0, 1.0), (1.0, 2.0)],
            &[(2.0, 1.0), (4.0, 2.0)],
            &[(1.0, f64::INFINITY)],
            &[(1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (4.0, 1.0)],
        ] {
            assert!(Curve::through(LOAD, points).is_err(), "{points:?}");
        }
    }
}
