//! The arguments of `firsttouch clean` and `firsttouch completions`.

use clap::Args;
use clap_complete::Shell;

/// Remove what firsttouch left in temporary and cache directories
#[derive(Debug, Args)]
#[command(
    long_about = "Lists and removes files of this user that firsttouch left behind: unpacked libraries and working directories of runs that \
        were killed (in TMPDIR, XDG_RUNTIME_DIR and /dev/shm), and stored libraries (in ~/.cache/firsttouch), which the next run writes \
        again. What a live process uses stays, also one of another container or host, which holds it by a lock. Profiles in ~/.cache/firsttouch stay too, unless --profiles is given: 'profile' puts them \
        there if it cannot write to the current directory.",
    after_help = "Examples:\n  \
        firsttouch clean --dry-run\n  \
        firsttouch clean\n  \
        firsttouch clean --profiles --json\n\n\
        Exit status: 0, also if there was nothing to remove; 1 if something could not be removed."
)]
pub struct Clean {
    /// List what would be removed, and remove nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Also remove the profiles in the cache directory
    #[arg(long)]
    pub profiles: bool,
    /// Print JSON (schema firsttouch.clean/1)
    #[arg(long)]
    pub json: bool,
}

/// Print the completions of a shell
#[derive(Debug, Args)]
#[command(
    long_about = "Prints a script with which a shell completes firsttouch's commands and options. 'make install' installs it.",
    after_help = "Examples:\n  \
        firsttouch completions bash > ~/.local/share/bash-completion/completions/firsttouch\n  \
        firsttouch completions zsh > ~/.zfunc/_firsttouch\n  \
        firsttouch completions fish > ~/.config/fish/completions/firsttouch.fish"
)]
pub struct Completions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}
