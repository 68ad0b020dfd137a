"""Kernels without Python: every instruction set is tested on every machine, and mutants die."""

import pytest

from tests.instruction_sets import SETS
from tests.native.builds import ARM, CORE, EMULATED, NATIVE, Target, build, run

pytestmark = pytest.mark.slow

SHARED = "error_sums_vectors.inc"
AVX512 = "error_sums_avx512.cpp"

MUTANTS = {
    "values are not clipped": (
        SHARED,
        "const Wide value = clipped(loaded<Wide>(values), pass.lowest, pass.highest);",
        "const Wide value = loaded<Wide>(values);",
    ),
    "errors are not clipped": (
        SHARED,
        "clipped(whole - value, -pass.threshold, pass.threshold)",
        "whole - value",
    ),
    "predictions are not clipped from above": (
        SHARED,
        "const Real inside = raised < ceiling ? raised : ceiling;",
        "const Real inside = raised;",
    ),
    "the last ratings of a row are forgotten": (
        SHARED,
        "for (int i = 0; i < now.size; i += 2) {",
        "for (int i = 0; i + 1 < now.size; i += 2) {",
    ),
    "errors remain after the last rating": (
        SHARED,
        "for (int i = size; i < batch; ++i) errors[i] = 0;",
        "",
    ),
    "large errors are left out": (
        SHARED,
        "if (is_large[i]) add_large_error(",
        "if (false) add_large_error(",
    ),
    "skipped columns contribute": (SHARED, "own.whole[k / shorts][k % shorts] = 0;", ""),
    "sums of columns are not spilled in time": (
        "error_segments.hpp",
        "if (most > std::numeric_limits<std::int32_t>::max()) break;",
        "",
    ),
    "sums of a row overflow": (
        "error_segments.hpp",
        "std::int64_t{usual_error(pass)} * ErrorPass::norm + 1",
        "std::int64_t{1}",
    ),
    "values are not clipped, 512 bits": (
        AVX512,
        "_mm512_maskz_sub_epi32(there, _mm512_cvtps_epi32(inside), clipped)",
        "_mm512_maskz_sub_epi32(there, _mm512_cvtps_epi32(inside), value)",
    ),
    "errors remain after the last rating, 512 bits": (
        AVX512,
        "_mm512_maskz_sub_epi32(there, _mm512_cvtps_epi32(inside), clipped)",
        "_mm512_sub_epi32(_mm512_cvtps_epi32(inside), clipped)",
    ),
    "large errors are left out, 512 bits": (
        AVX512,
        "if (large) [[unlikely]] add_large_errors(row, now.columns, large, all);",
        "",
    ),
    "a carry is dropped, AVX2": (
        "ziggurat.cpp",
        "_mm256_srli_epi64(bottom, uniform_bits));",
        "zero);",
    ),
    "a biased uniform is accepted, AVX2": (
        "ziggurat.cpp",
        "_mm256_or_si256(_mm256_cmpgt_epi64(magnitude, inside), "
        "_mm256_cmpgt_epi64(width, fraction)),",
        "_mm256_cmpgt_epi64(magnitude, inside),",
    ),
    "zero is drawn with both signs, 512 bits": (
        "ziggurat.cpp",
        "static_cast<__mmask8>(~(negative & _mm512_cmpeq_epi64_mask(magnitude, zero)));",
        "static_cast<__mmask8>(~0);",
    ),
    "the last draws are forgotten, AVX2": (
        "ziggurat.cpp",
        "for (; i + 4 <= count; i += 4) {",
        "for (; i + 4 <= count + 3; i += 4) {",
    ),
    "a row rounded too long stays": (
        "pack.cpp",
        "if (round(in, width, factor, packed) <= bound) continue;",
        "round(in, width, factor, packed);\n    continue;",
    ),
}


@pytest.mark.parametrize("target", [NATIVE, EMULATED, ARM], ids=lambda target: target.name)
def test_kernels_agree_with_obvious_references(target: Target) -> None:
    target.require()
    done = run(target, build(target))
    assert done.returncode == 0, done.stdout + done.stderr
    sets = {NATIVE: SETS, EMULATED: ["avx512", "avx2", "portable"], ARM: ["portable"]}
    assert done.stdout.splitlines()[:-1] == [f"instruction set {each}" for each in sets[target]]


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_dies_on_every_machine(mutant: str) -> None:
    EMULATED.require()
    name, correct, wrong = MUTANTS[mutant]
    text = (CORE / name).read_text()
    assert text.count(correct) == 1
    done = run(EMULATED, build(EMULATED, {name: text.replace(correct, wrong)}))
    assert done.returncode != 0, done.stdout
