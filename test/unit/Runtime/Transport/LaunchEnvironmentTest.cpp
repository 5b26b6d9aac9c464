//===- LaunchEnvironmentTest.cpp - Who a process is ---------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/LaunchEnvironment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

using namespace dovetail::runtime;
using testing::HasSubstr;

namespace {

using Variables = std::map<std::string, std::string>;

absl::StatusOr<LaunchEnvironment> read(const Variables &variables) {
  return readLaunchEnvironment([&](const char *name) -> const char * {
    auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
}

std::string problem(const Variables &variables) { return std::string(read(variables).status().message()); }

TEST(LaunchEnvironment, Torchrun) {
  auto result = read({{"RANK", "3"},
                      {"WORLD_SIZE", "8"},
                      {"LOCAL_RANK", "1"},
                      {"LOCAL_WORLD_SIZE", "2"},
                      {"MASTER_ADDR", "10.0.0.7"},
                      {"MASTER_PORT", "29500"}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->launcher, "torchrun");
  EXPECT_EQ(result->rank, 3);
  EXPECT_EQ(result->size, 8);
  EXPECT_EQ(result->localRank, 1);
  EXPECT_EQ(result->localSize, 2);
  EXPECT_EQ(result->address, "10.0.0.7");
  EXPECT_EQ(result->port, 29501); // torchrun listens on its port itself.
}

TEST(LaunchEnvironment, MpirunOnOneMachine) {
  auto result = read({{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "2"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->rank, 1);
  EXPECT_EQ(result->localSize, 2);
  EXPECT_EQ(result->address, "127.0.0.1");
}

TEST(LaunchEnvironment, MpirunOnMoreNeedsAnAddress) {
  Variables variables{{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "4"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  EXPECT_THAT(problem(variables), HasSubstr("DOVETAIL_ADDRESS is not set, and mpirun does not say"));
  variables["DOVETAIL_ADDRESS"] = "head";
  variables["DOVETAIL_PORT"] = "4000";
  EXPECT_EQ(read(variables)->address, "head");
  EXPECT_EQ(read(variables)->port, 4000);
}

TEST(LaunchEnvironment, SrunTakesTheFirstHost) {
  for (auto [list, first] : std::map<std::string, std::string>{{"node7", "node7"},
                                                               {"node7,node9", "node7"},
                                                               {"node[07-09,12],login1", "node07"},
                                                               {"gpu-a[3,5]", "gpu-a3"},
                                                               {"r[1-2]-ib,x", "r1-ib"}})
    EXPECT_EQ(
        read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_LOCALID", "0"}, {"SLURM_STEP_NODELIST", list}})
            ->address,
        first);
}

TEST(LaunchEnvironment, JobsAreTheLaunchers) {
  Variables slurm{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_JOB_ID", "4711"}, {"SLURM_STEP_ID", "2"}};
  EXPECT_EQ(read(slurm)->job, "4711.2");
  // Without srun, several launches of one allocation are told apart by their own launcher.
  slurm.insert({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"TORCHELASTIC_RUN_ID", "night"}});
  EXPECT_EQ(read(slurm)->job, "night");
  EXPECT_EQ(read({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}, {"PMIX_NAMESPACE", "11@1"}})->job,
            "11@1");
  EXPECT_EQ(read({{"DOVETAIL_RANK", "0"}, {"DOVETAIL_WORLD_SIZE", "1"}})->job, "");
  EXPECT_EQ(read({{"DOVETAIL_RANK", "0"}, {"DOVETAIL_WORLD_SIZE", "1"}, {"DOVETAIL_TOKEN", "abc"}})->token, "abc");
  EXPECT_THAT(
      problem({{"DOVETAIL_RANK", "0"}, {"DOVETAIL_WORLD_SIZE", "1"}, {"DOVETAIL_TOKEN", std::string(1025, 'a')}}),
      HasSubstr("DOVETAIL_TOKEN has more than 1024 characters"));
  // Nobody says how many processes this machine has.
  EXPECT_EQ(read({{"DOVETAIL_RANK", "0"}, {"DOVETAIL_WORLD_SIZE", "3"}, {"DOVETAIL_ADDRESS", "head"}})->localSize, 3);
}

TEST(LaunchEnvironment, WrongValuesAreNamed) {
  EXPECT_THAT(problem({}), HasSubstr("start it with torchrun, mpirun or srun"));
  EXPECT_THAT(problem({{"RANK", "1"}}), HasSubstr("the variable WORLD_SIZE is not set"));
  EXPECT_THAT(problem({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK is '2', not a number from 0 to 1"));
  EXPECT_THAT(problem({{"RANK", "x"}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK is 'x'"));
  EXPECT_THAT(problem({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_PORT", "65535"}}), HasSubstr("MASTER_PORT"));
  EXPECT_THAT(problem({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_WORLD_SIZE", "2"}}),
              HasSubstr("LOCAL_WORLD_SIZE is '2', not a number from 1 to 1"));
}

} // namespace
