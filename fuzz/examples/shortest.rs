//! Makes finds of the fuzz target `programs` as short as they get, and prints the operations of a test for each:
//!
//!     cargo run --release --example shortest -- artifacts/programs/crash-…
//!     cargo run --release --example shortest -- --seeds 1000..50000 [LENGTH]
//!
//! The first form takes files. The second makes its inputs from seeds, some hundred in a second, where libFuzzer takes
//! some twenty: without its instruments, and without its nose. Both leave `shortest-…` in the working directory, which
//! make a seed of the target. Fails if there is a find.

use std::process::ExitCode;

use wayferry_fuzz::programs::{seed, shortest};

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let finds = match &arguments[..] {
        ["--seeds", seeds] => from_seeds(seeds, "200"),
        ["--seeds", seeds, length] => from_seeds(seeds, length),
        files => Some(files.iter().filter(|file| from_file(file)).count()),
    };
    match finds {
        Some(0) => ExitCode::SUCCESS,
        Some(_) => ExitCode::FAILURE,
        None => {
            eprintln!("error: `--seeds` wants two numbers, `FROM..TO`, and perhaps a third");
            ExitCode::from(2)
        }
    }
}

fn from_seeds(seeds: &str, length: &str) -> Option<usize> {
    let (from, to) = seeds.split_once("..")?;
    let (from, to, length): (u64, u64, usize) = (from.parse().ok()?, to.parse().ok()?, length.parse().ok()?);
    Some((from..to).filter(|number| report(&format!("{number}-{length}"), &seed(*number, length))).count())
}

fn from_file(file: &str) -> bool {
    let name = std::path::Path::new(file).file_name().unwrap_or_default().to_string_lossy();
    match std::fs::read(file) {
        Ok(input) => report(&name, &input),
        Err(error) => {
            eprintln!("error: {file}: {error}");
            true
        }
    }
}

/// Whether an input is a find.
fn report(name: &str, input: &[u8]) -> bool {
    let Some((input, text)) = shortest(input) else { return false };
    let name = format!("shortest-{name}");
    println!("{name}: {text}\n");
    if let Err(error) = std::fs::write(&name, input) {
        eprintln!("error: {name}: {error}");
    }
    true
}
