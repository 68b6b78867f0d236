//! Who made a profile, and so could have written the name of any file into it.

/// The user whose files a profile may name: root shows only source files that this user may read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owner {
    User(u32),
    /// Several users, or nobody knows: it came through a pipe.
    #[default]
    Unknown,
}

impl Owner {
    pub const ROOT: Self = Self::User(0);

    /// Whose a profile is that both had their hands in. Root may read everything, so the other one decides.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::ROOT, one) | (one, Self::ROOT) => one,
            (one, other) if one == other => one,
            _ => Self::Unknown,
        }
    }

    /// As the file has it.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::User(number) => number.to_string(),
            Self::Unknown => "unknown".to_owned(),
        }
    }

    /// What cannot be read is nobody.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        text.parse().map_or(Self::Unknown, Self::User)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check whose a profile is that came through several hands, whatever their order.
    #[test]
    fn root_yields_to_others() {
        let [one, other] = [Owner::User(1000), Owner::User(1001)];
        for (first, second, both) in [
            (Owner::ROOT, Owner::ROOT, Owner::ROOT),
            (Owner::ROOT, one, one),
            (one, one, one),
            (one, other, Owner::Unknown),
            (Owner::Unknown, Owner::ROOT, Owner::Unknown),
            (Owner::Unknown, one, Owner::Unknown),
        ] {
            assert_eq!((first.and(second), second.and(first)), (both, both));
            assert_eq!(Owner::parse(&first.text()), first);
        }
        assert_eq!(Owner::parse("-1"), Owner::Unknown);
    }
}
