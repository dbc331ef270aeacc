# SPDX-License-Identifier: BSD-3-Clause
# Conformance driver of the transport contract: build/tests/exercise PLUGIN.so ...
EXERCISE_OBJ := $(BUILD)/core/error.o $(BUILD)/core/cli/sizes.o $(BUILD)/core/stats/histogram.o \
	$(patsubst %.c,$(BUILD)/%.o,$(wildcard core/engine/*.c))

$(BUILD)/tests/exercise: $(wildcard tests/contract/*.c tests/contract/*.h) $(EXERCISE_OBJ)
	@mkdir -p $(@D)
	$(CC) $(XB_CFLAGS) $(CORE_CFLAGS) $(LDFLAGS_ALL) -o $@ $(wildcard tests/contract/*.c) $(EXERCISE_OBJ) -ljansson -ldl -lm -lpthread

exercise: $(BUILD)/tests/exercise
.PHONY: exercise
