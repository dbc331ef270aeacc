# SPDX-License-Identifier: BSD-3-Clause
# What the tests in the guest take along, built with what the conformance driver is built for.
ifneq ($(verbs_OK),)
GUEST_PROGRAMS := $(BUILD)/tests/count_verbs.so $(BUILD)/tests/provoke
$(BUILD)/tests/count_verbs.so: tests/guest/count_verbs.c
	@mkdir -p $(@D)
	$(CC) $(filter-out -fsanitize=% -fno-sanitize%,$(XB_CFLAGS)) -shared -o $@ $< -ldl -libverbs
$(BUILD)/tests/provoke: tests/guest/provoke.c $(BUILD)/core/error.o
	@mkdir -p $(@D)
	$(CC) $(XB_CFLAGS) $(LDFLAGS_ALL) -o $@ $^ -ldl -lpthread
exercise: $(GUEST_PROGRAMS)
endif
