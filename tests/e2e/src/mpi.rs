// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Jobs of MPI, with firsttouch before the launcher or behind it.

use std::path::Path;
use std::process::Command;

/// An MPI as Debian installs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mpi {
    Open,
    Mpich,
}

pub const MPIS: [Mpi; 2] = [Mpi::Open, Mpi::Mpich];

/// Where firsttouch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// `mpirun firsttouch profile ./x`
    Inside,
    /// `firsttouch profile mpirun ./x`
    Outside,
}

pub const WAYS: [Way; 2] = [Way::Inside, Way::Outside];

/// `mpirun` refuses root, and more ranks than CPUs, unless told. The ranks of a hybrid job need the CPUs of all their threads: by default, Open MPI binds each
/// of two ranks to one core.
const ENVIRONMENT: [(&str, &str); 5] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("OMPI_MCA_btl_base_warn_component_unused", "0"),
    ("OMPI_MCA_hwloc_base_binding_policy", "none"),
];

impl Mpi {
    /// What Debian adds to the names of the launchers and compilers of this MPI.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Open => ".openmpi",
            Self::Mpich => ".mpich",
        }
    }

    #[must_use]
    pub fn launcher(self) -> String {
        format!("mpirun{}", self.suffix())
    }

    /// The command that records a program of `ranks` ranks. `profile`: firsttouch and its arguments, up to `--`.
    #[must_use]
    pub fn command(self, way: Way, ranks: &str, profile: &Command, program: &Path) -> Command {
        let launcher = self.launcher();
        let launch = [&launcher, "-n", ranks].map(AsRef::as_ref);
        let profile: Vec<_> = std::iter::once(profile.get_program()).chain(profile.get_args()).collect();
        let words = match way {
            Way::Inside => [&launch[..], &profile].concat(),
            Way::Outside => [&profile[..], &launch].concat(),
        };
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(program).envs(ENVIRONMENT);
        command
    }
}
