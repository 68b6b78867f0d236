// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <firsttouch.hpp>
#include <cstdio>

int main() {
    auto a = firsttouch::make_blocked_vector<int>(100'000);
    a.assign(a.size(), 1);
    std::printf("%s\n", firsttouch::report(a, firsttouch::partition::blocked(), "a").c_str());
    return firsttouch::verify(a, firsttouch::partition::blocked()).present < 90;
}
