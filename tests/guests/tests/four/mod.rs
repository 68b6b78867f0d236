//! Tests for the guest with four nodes.

mod slow_tier;
