// Exceptions thrown through frames that allocate, std::bad_alloc, operator new, and pthread_exit past destructors.
#include <cstdio>
#include <new>
#include <pthread.h>
#include <stdexcept>
#include <vector>

static int destroyed;
struct Guard {
    std::vector<double> data = std::vector<double>(20000);
    ~Guard() {
        destroyed++;
    }
};
static void dive(int depth) {
    Guard guard;
    if (depth == 0) {
        throw std::runtime_error("deep");
    }
    dive(depth - 1);
}
static void *leave(void *) {
    Guard guard;
    pthread_exit(reinterpret_cast<void *>(5));
}
static void *fail(void *) {
    try {
        dive(5);
    } catch (const std::exception &error) {
        std::printf("thread caught %s\n", error.what());
    }
    return nullptr;
}
__attribute__((noinline)) static char *by_new() {
    char *p = new char[123457];
    __asm__ volatile("" : : "r"(p) : "memory");
    return p;
}
int main() {
    for (int i = 0; i < 1000; i++) {
        try {
            dive(i % 10);
        } catch (const std::runtime_error &) {
        }
    }
    try {
        volatile size_t huge = size_t(1) << 60;
        new char[huge];
    } catch (const std::bad_alloc &) {
        std::puts("bad_alloc");
    }
    delete[] by_new();
    void *result = nullptr;
    pthread_t thread;
    pthread_create(&thread, nullptr, leave, nullptr);
    pthread_join(thread, &result);
    pthread_create(&thread, nullptr, fail, nullptr);
    pthread_join(thread, nullptr);
    std::printf("destroyed %d result %ld\n", destroyed, reinterpret_cast<long>(result));
}
