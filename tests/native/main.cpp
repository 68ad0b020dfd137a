// Tests the kernels without Python, on every instruction set that this processor or an emulator supports.
#include "support.hpp"

int main() {
  using namespace test;
  test_missing_instructions();
  for (const InstructionSet set : taciturn::supported_instruction_sets()) {
    std::printf("instruction set %s\n", std::string(name(set)).c_str());
    for (const auto run : {test_sampler, test_packing, test_error_sums, test_grid_sums,
                           test_least_squares, test_posterior, test_top_k}) {
      run(set);
    }
  }
  std::printf(failures ? "%d checks failed\n" : "all checks passed\n", failures);
  return failures ? 1 : 0;
}
