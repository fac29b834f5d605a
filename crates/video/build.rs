//! Compiles the bit of C that calls libavcodec, with the feature `ffmpeg` only.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "ffmpeg")]
    ffmpeg();
}

#[cfg(feature = "ffmpeg")]
fn ffmpeg() {
    println!("cargo::rerun-if-changed=src/ffmpeg.c");
    let find = |name, version| {
        let found = pkg_config::Config::new().atleast_version(version).cargo_metadata(false).probe(name);
        found
            .unwrap_or_else(|error| panic!("the feature `ffmpeg` needs {name} of FFmpeg 5 or later: {error}"))
    };
    let libraries = [find("libavcodec", "59"), find("libavutil", "57")];
    let mut build = cc::Build::new();
    build.file("src/ffmpeg.c").std("c11").warnings(true).extra_warnings(true);
    for library in &libraries {
        build.includes(&library.include_paths);
    }
    build.compile("wayferry_ffmpeg");
    // Behind what needs them: a linker may leave out what no object has asked for yet.
    for library in &libraries {
        for path in &library.link_paths {
            println!("cargo::rustc-link-search=native={}", path.display());
        }
        for name in &library.libs {
            println!("cargo::rustc-link-lib={name}");
        }
    }
}
