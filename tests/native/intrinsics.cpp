#include "support.hpp"
namespace test { void test_missing_instructions() {} }
