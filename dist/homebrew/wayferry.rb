# scripts/packages fills in the version and the repository.
class Wayferry < Formula
  desc "Remote Wayland programs as windows of this desktop, over QUIC"
  homepage "@REPOSITORY@"
  url "@REPOSITORY@.git", tag: "v@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "cmake" => :build
  depends_on "nasm" => :build
  depends_on "rust" => :build
  depends_on :linux

  def install
    system "cargo", "install", *std_cargo_args(path: "crates/cli")
    system "cargo", "install", *std_cargo_args(path: "crates/lab")
    mkdir "pages"
    system bin/"wayferry", "man", "--to", "pages"
    man1.install Dir["pages/*"]
    generate_completions_from_executable(bin/"wayferry", "completions")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/wayferry --version")
  end
end
